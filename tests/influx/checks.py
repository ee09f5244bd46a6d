"""Checks: a PUT stores the check before it makes its script, and may fail in between."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.influx import flux, gojson, scripts
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.labels import at_creation
from tests.influx.problem import HIDDEN_REASON, Problem
from tests.influx.queries import QUERY, level, typed
from tests.influx.routing import Route
from tests.influx.scripted import Scripted, check_offset, check_tags, checked_change, duration
from tests.influx.state import Resource, State, now
from tests.influx.task_options import TaskOptions, task_options

KIND = "checks"
PATH = f"/api/v2/{KIND}"

_THRESHOLD = {"type": gojson.text, "level": level, "allValues": gojson.flag}
_VALUE = gojson.struct_of({**_THRESHOLD, "value": gojson.number})
_THRESHOLDS = {
    "greater": _VALUE,
    "lesser": _VALUE,
    "range": gojson.struct_of(
        {**_THRESHOLD, "min": gojson.number, "max": gojson.number, "within": gojson.flag},
    ),
}
_BASE = {
    "type": gojson.text,
    "name": gojson.text,
    "description": gojson.text,
    "orgID": gojson.identifier,
    "status": gojson.text,
    "query": QUERY,
    "labels": gojson.listing(gojson.text),
}
_TIMED = {
    "every": duration("Check Every", "invalid"),
    "offset": duration("Check Offset", "invalid"),
    "tags": gojson.listing(gojson.struct(key=gojson.text, value=gojson.text)),
    "statusMessageTemplate": gojson.text,
}
_TYPES: Mapping[str, Mapping[str, gojson.Shape]] = {
    "threshold": {**_BASE, **_TIMED, "thresholds": gojson.listing(typed(_THRESHOLDS))},
    "deadman": {
        **_BASE,
        **_TIMED,
        "timeSince": duration("Check TimeSince", "invalid"),
        "staleTime": duration("Check StaleTime", "invalid"),
        "reportZero": gojson.flag,
        "level": level,
    },
    "custom": _BASE,
}
_SHAPE = typed({name: gojson.struct_of(fields) for name, fields in _TYPES.items()})


class Checks:
    """Names are unique over all types."""

    def __init__(self, state: State) -> None:
        self._state, self._names = state, state.names[KIND]
        self._checks = Scripted(state, KIND, "check", _visible)

    def routes(self) -> Sequence[Route]:
        return (
            ("POST", PATH, self._create),
            ("GET", PATH, self._checks.listed),
            ("GET", f"{PATH}/{{id}}", self._read),
            ("GET", f"{PATH}/{{id}}/query", self._query),
            ("PATCH", f"{PATH}/{{id}}", self._change),
            ("PUT", f"{PATH}/{{id}}", self._replace),
            ("DELETE", f"{PATH}/{{id}}", self._delete),
        )

    def _create(self, call: Call) -> Answer:
        sent = call.read(_SHAPE, whole=True)
        labels = sent.pop("labels")
        self._checks.check_org(call, sent["orgID"])
        _check(sent)
        if self._names.are_taken(sent["orgID"], sent["name"]):
            raise Problem("conflict", f"check is not unique for key {sent['orgID']}{sent['name']}")
        check = self._checks.new(sent, call.caller.user, sent["type"])
        # The server checks a custom script elsewhere, where the error does not say what is wrong.
        fault = "internal error" if sent["type"] == "custom" else "invalid"
        script, options = _script(check, fault)
        self._checks.store(check, script, options)
        self._names.record(check)
        at_creation(self._state, KIND, check["id"], labels)
        return self._shown(201, check)

    def _read(self, call: Call) -> Answer:
        return self._shown(200, self._checks.found(call, "read"))

    def _query(self, call: Call) -> Answer:
        return answer(200, {"flux": _script(self._checks.found(call, "read"), "internal error")[0]})

    def _change(self, call: Call) -> Answer:
        changes = checked_change(call, "Check")
        check = self._checks.found(call, "write")
        name = changes.get("name") or check["name"]
        self._check_free(check, name)
        if check["type"] == "custom" and name != check["name"]:
            raise Problem("invalid", "_check_name parameter on check object must match check name")
        check |= {**changes, "updatedAt": now()}
        self._names.record(check)
        self._checks.task(check)["status"] = check["status"]  # The script keeps the old name.
        return self._shown(200, check)

    def _replace(self, call: Call) -> Answer:
        sent = call.read(_SHAPE, whole=True)
        del sent["labels"]
        if not sent["orgID"]:
            raise Problem("invalid", "Check OrgID is invalid")
        _check(sent)
        old = self._checks.found(call, "write")
        self._check_free(old, sent["name"])
        kept = {"id", "orgID", "ownerID", "taskID", "createdAt", "latestCompleted", "latestScheduled"}
        check = {**sent, **{key: value for key, value in old.items() if key in kept}, "updatedAt": now()}
        if check["type"] == "custom":
            scripts.of_custom_check(check, check["query"]["text"])
        self._checks.all[check["id"]] = check
        self._names.record(check)
        script, options = _script(check, "internal error")
        self._checks.run(check, script, options)
        return self._shown(200, check)

    def _delete(self, call: Call) -> Answer:
        check = self._checks.found(call, "write")
        del self._state.kinds["tasks"][check["taskID"]]
        del self._checks.all[check["id"]]
        return nothing()

    def _check_free(self, check: Resource, name: str) -> None:
        if self._names.are_taken(check["orgID"], name, check["id"]):
            raise Problem("conflict", "check name is not unique")

    def _shown(self, status: int, check: Resource) -> Answer:
        return answer(status, self._checks.shown(check))


def _visible(check: Resource) -> Resource:
    """A check without its empty optional fields; an empty list of thresholds is null."""
    found = {key: value for key, value in check.items() if value or key not in {"description", "offset"}}
    if "thresholds" in found:
        found["thresholds"] = [_visible_threshold(each) for each in found["thresholds"] or ()] or None
    return found


def _visible_threshold(threshold: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in threshold.items() if value or key not in {"min", "max"}}


def _check(sent: Mapping[str, Any]) -> None:
    """Checks of the server before anything is stored."""
    if not sent["name"]:
        raise Problem("invalid", "Check Name can't be empty")
    if sent["status"] not in {"active", "inactive"}:
        raise Problem("invalid", "invalid status: must be active or inactive")
    if sent["type"] == "custom":
        return
    if not sent["every"]:
        raise Problem("invalid", "Check Every can't be empty")
    check_offset(sent["every"], sent["offset"])
    check_tags(sent["tags"])
    for threshold in sent.get("thresholds") or ():
        if threshold["type"] == "range" and threshold["min"] > threshold["max"]:
            raise Problem("invalid", "range threshold min can't be larger than max")


def _script(check: Resource, fault: str) -> tuple[str, TaskOptions]:
    """The script of a check; *fault* is the code for a script with a syntax error."""
    if check["type"] == "custom":
        check["query"] = {**check["query"], "text": scripts.of_custom_check(check, check["query"]["text"])}
    if check["type"] == "deadman" and check["staleTime"] is None:
        raise Problem("internal error", HIDDEN_REASON)
    try:
        script = scripts.of_check(check)
        return script, task_options(script)
    except flux.FluxError as error:
        hidden = fault == "internal error"
        raise Problem(fault, HIDDEN_REASON if hidden else f"Could not create task from check: {error}") from error
