"""Updates the scripts of rules after a change of their endpoint, as the server writes a script only with its rule."""

import logging
from collections.abc import Iterable

from services.drivers.influxdb.client import Client, NotSent, Unanswered
from services.drivers.influxdb.codecs.codec import Body
from services.drivers.influxdb.reading import RULES, CannotRead, ResourceReader
from services.drivers.influxdb.write_outcomes import WriteRequest, refusal
from services.drivers.mutation import Rejected

log = logging.getLogger("pkger.platform")


class RuleScripts:
    """Tracks, in this process, the endpoints whose rules may still run scripts with outdated fields of the endpoint."""

    def __init__(self, client: Client, reader: ResourceReader) -> None:
        self._client = client
        self._reader = reader
        self._behind: set[tuple[str, str]] = set()

    def record(self, org_id: str, endpoint_id: str) -> None:
        """Record that a change is about to be sent to fields of the endpoint that the scripts of its rules contain."""
        self._behind.add((org_id, endpoint_id))

    def forget(self, org_id: str, endpoint_id: str) -> None:
        """Drop the record: the change certainly had no effect."""
        self._behind.discard((org_id, endpoint_id))

    async def catch_up(self, org_id: str, endpoint_ids: Iterable[str]) -> None:
        """
        Let the server rewrite the scripts of all rules with one of the endpoints, if they may be outdated.

        It is safe to repeat: each rule is updated with the name that it has.

        Raises:
            CannotRead: A script could not be rewritten; a retry may help.
        """
        behind = {id_ for id_ in endpoint_ids if (org_id, id_) in self._behind}
        if not behind:
            return
        for rule in await self._reader.listed(org_id, RULES):
            if rule.get("endpointID") in behind:
                await self._write(rule)
        self._behind -= {(org_id, id_) for id_ in behind}

    async def _write(self, rule: Body) -> None:
        try:
            answer = await self._client.send("PATCH", f"/api/v2/{RULES}/{rule['id']}", {"name": rule["name"]})
        except (NotSent, Unanswered) as error:
            answered = isinstance(error, Unanswered) and bool(error.status)
            problem = f"the script of rule {rule['id']!r} could not be rewritten: {error}"
            raise CannotRead(problem, answered=answered) from None
        refused = refusal(WriteRequest("PATCH", RULES), answer)
        if isinstance(refused, Rejected) and refused.reason is not None:
            # A retry would be refused too, and an error would block every later read.
            log.warning("a rule keeps the script of a former endpoint", extra={"rule": rule["id"]})
        elif refused is not None:
            raise CannotRead(f"the script of rule {rule['id']!r} could not be rewritten: {refused.message}")
