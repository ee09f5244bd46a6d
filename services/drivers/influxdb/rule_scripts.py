"""Keeps the scripts of rules up with their endpoints: the server writes a script with its rule only."""

import logging
from collections.abc import Iterable

from services.drivers.influxdb.answers import Request, refusal
from services.drivers.influxdb.client import Client, NotSent, Unanswered
from services.drivers.influxdb.codecs.codec import Body
from services.drivers.influxdb.reading import RULES, CannotRead, Reader
from services.drivers.mutation import Rejected

log = logging.getLogger("pkger.platform")


class RuleScripts:
    """Knows the endpoints whose rules may still run scripts of what the endpoints were, while the process lives."""

    def __init__(self, client: Client, reader: Reader) -> None:
        self._client = client
        self._reader = reader
        self._behind: set[tuple[str, str]] = set()

    def note(self, org_id: str, endpoint_id: str) -> None:
        """A change of the endpoint is about to be sent that its rules have in their scripts."""
        self._behind.add((org_id, endpoint_id))

    def forget(self, org_id: str, endpoint_id: str) -> None:
        """The change certainly was not carried out."""
        self._behind.discard((org_id, endpoint_id))

    async def catch_up(self, org_id: str, endpoint_ids: Iterable[str]) -> None:
        """
        Let the server write the scripts of all rules anew that use one of the endpoints and may be behind.

        It may be repeated: a rule gets the name that it has.

        Raises:
            CannotRead: The server did not do it this time.
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
            raise CannotRead(f"the script of rule {rule['id']!r} could not be written anew: {error}") from None
        refused = refusal(Request("PATCH", RULES), answer)
        if isinstance(refused, Rejected) and refused.reason is not None:
            # It would be refused again; to fail for ever would help nobody.
            log.warning("a rule keeps the script of a former endpoint", extra={"rule": rule["id"]})
        elif refused is not None:
            raise CannotRead(f"the script of rule {rule['id']!r} could not be written anew: {refused.message}")
