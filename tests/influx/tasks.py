"""Tasks: scripts that are stored unchanged, and parsed only for their options."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from tests.influx import durations, flux, gojson
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.labels import shown
from tests.influx.problem import Problem
from tests.influx.routing import Route
from tests.influx.state import Resource, State, public, whole_second
from tests.influx.task_options import TaskOptions, rewritten, task_options

PATH = "/api/v2/tasks"

_NEW = gojson.struct(
    orgID=gojson.identifier, org=gojson.text, flux=gojson.text, status=gojson.text, description=gojson.text
)
_CHANGE = gojson.struct(
    flux=gojson.optional(gojson.text),
    status=gojson.optional(gojson.text),
    description=gojson.optional(gojson.text),
    name=gojson.text,
    every=gojson.text,
    cron=gojson.text,
    offset=gojson.optional(gojson.text),
)


class Tasks:
    """A missing permission is answered with 500, or 404 for a read; only the message distinguishes it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._all = state.kinds["tasks"]

    def routes(self) -> Sequence[Route]:
        return (
            ("POST", PATH, self._create),
            ("GET", PATH, self._list),
            ("GET", f"{PATH}/{{id}}", self._read),
            ("PATCH", f"{PATH}/{{id}}", self._change),
            ("DELETE", f"{PATH}/{{id}}", self._delete),
        )

    def _create(self, call: Call) -> Answer:
        sent = call.read(_NEW)
        if not sent["flux"]:
            raise Problem("invalid", "failed to decode request: missing flux")
        _check_status(sent["status"] or "active")
        org = sent["orgID"] or (self._state.named_org(sent["org"]) if sent["org"] else "")
        if not org:
            raise Problem("invalid", "failed to decode request: missing orgID and org")
        if org not in self._state.orgs:
            raise Problem("not found", "could not identify organization: organization not found")
        if not call.caller.may("write", "tasks", org):
            raise Problem("internal error", "failed to create task: unauthorized")
        try:
            options = task_options(sent["flux"])
        except flux.FluxError as error:
            raise Problem("invalid", f"invalid options: {error}") from error
        task = add_task(self._state, org, call.caller.user, sent["flux"], options, sent["status"] or "active")
        task["description"] = sent["description"]
        return answer(201, self._shown(task))

    def _list(self, call: Call) -> Answer:
        limit = _limit(call)
        org, after, user = call.query_id("orgID"), call.query_id("after"), call.query_id("user")
        if not org and call.query.get("org"):
            org = self._state.named_org(call.query["org"], "invalid")
        if not org and not user:
            user = call.caller.user
        name, status = call.query.get("name", ""), call.query.get("status", "")
        status = status if status in {"active", "inactive"} else ""  # Other values are no filter.
        found = [
            task
            for id_, task in self._all.items()
            if id_ > after
            and org in {"", task["orgID"]}
            and user in {"", task["ownerID"]}
            and name in {"", task["name"]}
            and status in {"", task["status"]}
            and task["_type"] == "system"
        ][:limit]
        is_basic = call.query.get("type") == "basic"
        listed = [
            self._shown(task, is_basic) for task in found if call.caller.may("read", "tasks", task["orgID"], task["id"])
        ]
        return answer(200, {"links": _links(call, limit, org, found), "tasks": listed})

    def _read(self, call: Call) -> Answer:
        return answer(200, self._shown(self._found(call, "read", "find", "not found")))

    def _change(self, call: Call) -> Answer:
        sent = call.read(_CHANGE)
        options = _written_options(sent)
        if sent["flux"] is None and sent["status"] is None and not options:
            raise Problem("invalid", "failed to decode request: cannot update task without content")
        if sent["status"] is not None:
            _check_status(sent["status"])
        task = self._found(call, "write", "update", "internal error")
        script = task["flux"] if sent["flux"] is None else sent["flux"]
        try:
            script = rewritten(script, options) if options else script
            read = task_options(script)
        except flux.FluxError as error:
            raise Problem("internal error", f"failed to update task: {error}") from error
        except Problem as problem:
            raise Problem(problem.code, f"failed to update task: {problem}") from problem
        write_script(task, script, read)
        for key in ("status", "description"):
            if sent[key] is not None:
                task[key] = sent[key]
        task["updatedAt"] = whole_second()
        return answer(200, self._shown(task))

    def _delete(self, call: Call) -> Answer:
        del self._all[self._found(call, "write", "delete", "internal error")["id"]]
        return nothing()

    def _found(self, call: Call, action: str, verb: str, denied: str) -> Resource:
        task = self._all.get(call.id())
        if task is None:
            raise Problem("not found", f"failed to {verb} task: task not found")
        if not call.caller.may(action, "tasks", task["orgID"], task["id"]):
            raise Problem(denied, f"failed to {verb} task: unauthorized")
        return task

    def _shown(self, task: Resource, is_basic: bool = False) -> Resource:
        path = f"{PATH}/{task['id']}"
        own = {"self": path, **{part: f"{path}/{part}" for part in ("labels", "logs", "members", "owners", "runs")}}
        found = {key: value for key, value in public(task).items() if value or key == "flux"}
        if is_basic:
            found = {key: value for key, value in found.items() if key not in {"createdAt", "updatedAt"}}
            found |= {"flux": "", "org": ""}
        return {"links": own, "labels": shown(self._state.labels_of("tasks", task["id"])), **found}


def add_task(
    state: State, org: str, owner: str, script: str, options: TaskOptions, status: str, type_: str = "system"
) -> Resource:
    """A new task. A task whose type is not ``system`` is left out of lists."""
    id_, time = state.new_id(), whole_second()
    task: Resource = {
        "id": id_,
        "orgID": org,
        "org": state.org_name(org),
        "ownerID": owner,
        "description": "",
        "status": status,
        "latestCompleted": time,
        "createdAt": time,
        "updatedAt": "",
        "_type": type_,
    }
    write_script(task, script, options)
    state.kinds["tasks"][id_] = task
    return task


def write_script(task: Resource, script: str, options: TaskOptions) -> None:
    """Store the script of a task, and the values read from it."""
    task |= {"flux": script, "name": options.name, "every": options.every, "cron": options.cron}
    task["offset"] = durations.normal(options.offset)


def _check_status(status: str) -> None:
    if status not in {"active", "inactive"}:
        raise Problem("invalid", f'failed to decode request: invalid task status: "{status}"')


def _written_options(sent: Mapping[str, Any]) -> dict[str, str]:
    """The options of a PATCH, as literals."""
    found = {key: flux.quoted(sent[key]) for key in ("name", "cron") if sent[key]}
    found |= {key: sent[key] for key in ("every", "offset") if sent[key]}
    return {key: found[key] for key in ("name", "every", "cron", "offset") if key in found}


def _limit(call: Call) -> int:
    sent = call.query.get("limit", "")
    try:
        limit = int(sent) if sent else 100
    except ValueError as error:
        raise Problem("invalid", f'failed to decode request: parsing "{sent}": invalid syntax') from error
    if not 1 <= limit <= 500:
        raise Problem("invalid", "failed to decode request: limit must be between 1 and 500")
    return limit


def _links(call: Call, limit: int, org: str, found: Sequence[Resource]) -> dict[str, str]:
    """``next`` lacks the filters by name, status and type."""
    query = {"limit": str(limit)}
    if call.query.get("org") and not call.query.get("orgID"):
        query["org"] = call.query["org"]
    if org:
        query["orgID"] = org
    after = {"after": call.query["after"]} if call.query.get("after") else {}
    own = {"self": f"{PATH}?{urlencode({**after, **query})}"}
    if len(found) >= limit:
        own["next"] = f"{PATH}?{urlencode({'after': found[-1]['id'], **query})}"
    return own
