"""The common part of checks and rules: a hidden task each, and lists without the ones that lost it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.influx import durations, gojson
from tests.influx.access import Caller
from tests.influx.call import Answer, Call, answer, checked_id
from tests.influx.labels import shown
from tests.influx.paging import links, page
from tests.influx.problem import Problem
from tests.influx.state import Resource, State, now, public, whole_second
from tests.influx.task_options import TaskOptions
from tests.influx.tasks import add_task, write_script

Accepts = Callable[[Resource], bool]


class Scripted:
    """Checks or rules of one server."""

    def __init__(self, state: State, kind: str, noun: str, visible: Callable[[Resource], Resource]) -> None:
        self._state, self._kind, self._noun, self._visible = state, kind, noun, visible
        self.all = state.kinds[kind]

    def new(self, content: Mapping[str, Any], owner: str, type_: str) -> Resource:
        """A resource that is not stored yet."""
        time = now()
        own = {"id": self._state.new_id(), "ownerID": owner, "createdAt": time, "updatedAt": time}
        return {**content, **own, "latestCompleted": whole_second(), "latestScheduled": whole_second(), "_task": type_}

    def store(self, item: Resource, script: str, options: TaskOptions) -> None:
        """Store a new resource, with its hidden task."""
        task = add_task(self._state, item["orgID"], item["ownerID"], script, options, item["status"], item.pop("_task"))
        task["updatedAt"] = task["createdAt"]
        item["taskID"] = task["id"]
        self.all[item["id"]] = item

    def task(self, item: Resource) -> Resource:
        """The hidden task."""
        return self._state.kinds["tasks"][item["taskID"]]

    def run(self, item: Resource, script: str, options: TaskOptions) -> None:
        """Let the hidden task run this script from now on."""
        write_script(self.task(item), script, options)
        self.task(item)["status"] = item["status"]

    def found(self, call: Call, action: str) -> Resource:
        """The resource of the path; without its hidden task it cannot be reached."""
        id_ = call.id()
        item = self.all.get(id_)
        if item is None:
            raise Problem("not found", f"{self._noun} not found")
        call.caller.require(action, self._kind, item["orgID"], id_)
        if not self._has_task(item):
            raise Problem("not found", "task not found")
        return item

    def check_org(self, call: Call, org: str) -> None:
        """Raise unless the caller may create resources in this organization."""
        if not org:
            raise Problem("invalid", "invalid org id for permission: invalid ID")
        call.caller.require("write", self._kind, org)
        if org not in self._state.orgs:
            raise Problem("not found", "organization not found")

    def listed(self, call: Call, accepts: Accepts = lambda _: True) -> Answer:
        """A page; it is cut before hidden items are left out."""
        org, filters = org_filter(self._state, call)
        found = [item for item in self.all.values() if org in {"", item["orgID"]} and accepts(item)]
        items = page(found, call)
        seen = [self.shown(item) for item in items if self._may_show(call.caller, item)]
        path = f"/api/v2/{self._kind}"
        return answer(200, {"links": links(path, call, len(seen), filters), self._kind: seen})

    def shown(self, item: Resource) -> Resource:
        path = f"/api/v2/{self._kind}/{item['id']}"
        own = {"self": path, **{part: f"{path}/{part}" for part in ("labels", "members", "owners", "query")}}
        return {
            "links": own,
            **self._visible(public(item)),
            "labels": shown(self._state.labels_of(self._kind, item["id"])),
        }

    def _has_task(self, item: Resource) -> bool:
        return item["taskID"] in self._state.kinds["tasks"]

    def _may_show(self, caller: Caller, item: Resource) -> bool:
        return self._has_task(item) and caller.may("read", self._kind, item["orgID"], item["id"])


def org_filter(state: State, call: Call) -> tuple[str, dict[str, str | Sequence[str]]]:
    """The organization of a list, "" for all, and the parameters that the links of the list repeat."""
    sent, tags = call.query.get("orgID", ""), [":".join(tag) for tag in tag_filters(call)]
    if sent:
        return checked_id(sent), {"orgID": sent, "tag": tags}
    name = call.query.get("org", "")
    return (state.named_org(name) if name else ""), {"org": name, "tag": tags}


def tag_filters(call: Call) -> list[tuple[str, str]]:
    """The tags by which a list of rules is filtered; malformed ones are ignored."""
    sent = [tag.partition(":") for tag in call.query.getall("tag", [])]
    return [(key, value) for key, _, value in sent if key and value and ":" not in value]


def duration(name: str, empty: str) -> gojson.Shape:
    """
    A duration that may be absent; it is stored as it was sent.

    Args:
        empty: The code of the problem for an empty text.
    """

    def read(value: Any) -> str | None:
        if value is None:
            return None
        sent = gojson.text(value)
        if not sent:
            raise Problem(empty, f"{name} can't be empty")
        if durations.nanoseconds(sent) is None:
            raise gojson.BadJson(f"invalid duration {sent}")
        return sent.replace("µs", "us")

    return read


def check_offset(every: str | None, offset: str | None) -> None:
    """Raise unless the offset is shorter than the time between two runs."""
    if offset and every and (durations.nanoseconds(offset) or 0) >= (durations.nanoseconds(every) or 0):
        raise Problem("invalid", "Offset should not be equal or greater than the interval")


def check_tags(tags: Sequence[Mapping[str, str]] | None) -> None:
    if any(not tag["key"] or not tag["value"] for tag in tags or ()):
        raise Problem("invalid", "tag must contain a key and a value")


def checked_change(call: Call, noun: str) -> dict[str, str]:
    """The changes of a PATCH of a check, endpoint or rule; other keys are ignored."""
    sent = call.read(_CHANGE)
    for key in ("name", "description"):
        if sent[key] == "":
            raise Problem("invalid", f"{noun} {key.title()} can't be empty")
    if sent["status"] not in {None, "active", "inactive"}:
        raise Problem("invalid", "invalid status: must be active or inactive")
    return {key: value for key, value in sent.items() if value is not None}


_CHANGE = gojson.struct(
    name=gojson.optional(gojson.text), description=gojson.optional(gojson.text), status=gojson.optional(gojson.text)
)
