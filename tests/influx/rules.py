"""Notification rules: each write of a rule generates its script from the rule and the current endpoint."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.influx import flux, gojson, scripts
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.endpoints import found_endpoint
from tests.influx.labels import at_creation
from tests.influx.problem import HIDDEN_REASON, Problem
from tests.influx.queries import level, typed
from tests.influx.routing import Route
from tests.influx.scripted import Scripted, check_offset, check_tags, checked_change, duration, tag_filters
from tests.influx.state import Resource, State, now
from tests.influx.task_options import TaskOptions, task_options

KIND = "notificationRules"
PATH = f"/api/v2/{KIND}"

_STATUS_RULE = gojson.struct(currentLevel=level, previousLevel=gojson.optional(level))
_TAG_RULE = gojson.struct(key=gojson.text, value=gojson.text, operator=gojson.text)
_BASE = {
    "type": gojson.text,
    "name": gojson.text,
    "description": gojson.text,
    "orgID": gojson.identifier,
    "endpointID": gojson.identifier,
    "status": gojson.text,
    "every": duration("Notification Rule Every", "internal error"),
    "offset": duration("Notification Rule Offset", "internal error"),
    "runbookLink": gojson.text,
    "sleepUntil": gojson.optional(gojson.moment),
    "tagRules": gojson.listing(_TAG_RULE),
    "statusRules": gojson.listing(_STATUS_RULE),
    "limit": gojson.integer(),
    "limitEvery": gojson.integer(),
    "labels": gojson.listing(gojson.text),
}
_TYPES: Mapping[str, Mapping[str, gojson.Shape]] = {
    "slack": {"channel": gojson.text, "messageTemplate": gojson.text},
    "http": {},
    "pagerduty": {"messageTemplate": gojson.text},
    "telegram": {"messageTemplate": gojson.text, "parseMode": gojson.text, "disableWebPagePreview": gojson.flag},
}
_SHAPE = typed({name: gojson.struct_of({**_BASE, **fields}) for name, fields in _TYPES.items()})
_LEFT_OUT = ("description", "offset", "sleepUntil", "tagRules", "statusRules", "limit", "limitEvery")
"""Fields that answers leave out when they are empty."""


class Rules:
    """The notification rules of one server; a refused PUT changes nothing."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._rules = Scripted(state, KIND, "notification rule", _visible)

    def routes(self) -> Sequence[Route]:
        return (
            ("POST", PATH, self._create),
            ("GET", PATH, self._list),
            ("GET", f"{PATH}/{{id}}", self._read),
            ("GET", f"{PATH}/{{id}}/query", self._query),
            ("PATCH", f"{PATH}/{{id}}", self._change),
            ("PUT", f"{PATH}/{{id}}", self._replace),
            ("DELETE", f"{PATH}/{{id}}", self._delete),
        )

    def _create(self, call: Call) -> Answer:
        sent = call.read(_SHAPE, whole=True)
        labels = sent.pop("labels")
        _check(sent)
        self._rules.check_org(call, sent["orgID"])
        rule = self._rules.new(sent, call.caller.user, sent["type"])
        script, options = self._script(rule, "invalid")
        self._rules.store(rule, script, options)
        at_creation(self._state, KIND, rule["id"], labels)
        return self._shown(201, rule)

    def _list(self, call: Call) -> Answer:
        return self._rules.listed(call, _matching(dict(tag_filters(call))))

    def _read(self, call: Call) -> Answer:
        return self._shown(200, self._rules.found(call, "read"))

    def _query(self, call: Call) -> Answer:
        return answer(200, {"flux": self._script(self._rules.found(call, "read"), "internal error")[0]})

    def _change(self, call: Call) -> Answer:
        changes = checked_change(call, "Notification Rule")
        rule = self._rules.found(call, "write")
        self._write({**rule, **changes})
        return self._shown(200, self._rules.all[rule["id"]])

    def _replace(self, call: Call) -> Answer:
        sent = call.read(_SHAPE, whole=True)
        _check(sent)
        rule = self._rules.found(call, "write")
        kept = {"id", "orgID", "ownerID", "taskID", "createdAt", "latestCompleted", "latestScheduled"}
        self._write({**sent, **{key: value for key, value in rule.items() if key in kept}})
        return self._shown(200, self._rules.all[rule["id"]])

    def _delete(self, call: Call) -> Answer:
        rule = self._rules.found(call, "write")
        del self._state.kinds["tasks"][rule["taskID"]]
        del self._rules.all[rule["id"]]
        return nothing()

    def _write(self, rule: Resource) -> None:
        """Store a rule, and generate its script from its current endpoint."""
        script, options = self._script(rule, "internal error")
        rule.pop("labels", None)
        self._rules.all[rule["id"]] = {**rule, "updatedAt": now()}
        self._rules.run(rule, script, options)

    def _script(self, rule: Resource, fault: str) -> tuple[str, TaskOptions]:
        """The script of a rule, with its task options; *fault* is the error code if the script has a syntax error."""
        endpoint = found_endpoint(self._state, rule["endpointID"])
        if endpoint["type"] != rule["type"] or not rule["status"] or not rule["every"]:
            raise Problem("internal error", HIDDEN_REASON)
        script = scripts.of_rule(rule, endpoint)
        try:
            return script, task_options(script)
        except flux.FluxError as error:
            hidden = fault == "internal error"
            raise Problem(fault, HIDDEN_REASON if hidden else f"invalid options: {error}") from error

    def _shown(self, status: int, rule: Resource) -> Answer:
        return answer(status, self._rules.shown(rule))


def _visible(rule: Resource) -> Resource:
    return {key: value for key, value in rule.items() if value or key not in _LEFT_OUT}


def _check(sent: dict[str, Any]) -> None:
    if not sent["endpointID"]:
        raise Problem("invalid", "Notification Rule EndpointID is invalid")
    if sent["status"] not in {"", "active", "inactive"}:
        raise Problem("invalid", "invalid status: must be active or inactive")
    check_offset(sent["every"], sent["offset"])
    check_tags(sent["tagRules"])
    for rule in sent["tagRules"] or ():
        rule["operator"] = rule["operator"] or "equal"
        if rule["operator"] not in {"equal", "notequal", "equalregex", "notequalregex"}:
            raise Problem("invalid", "unrecognized operator")
    if (sent["limit"] or sent["limitEvery"]) and not (sent["limit"] > 0 and sent["limitEvery"] > 0):
        raise Problem("invalid", "if limit is set, limit and limitEvery must be larger than 0")
    if not sent.get("messageTemplate", "-"):
        raise Problem("invalid", f"{sent['type']} msg template is empty")


def _matching(tags: Mapping[str, str]) -> Callable[[Resource], bool]:
    """Return a predicate that accepts the rules whose tag rules match a status with these tags."""

    def accepts(rule: Resource) -> bool:
        return not tags or all(_holds(each, tags.get(each["key"])) for each in rule["tagRules"] or ())

    return accepts


def _holds(rule: Mapping[str, str], value: str | None) -> bool:
    if value is None:
        return False
    is_equal = rule["value"] == value
    return not is_equal if rule["operator"].startswith("not") else is_equal
