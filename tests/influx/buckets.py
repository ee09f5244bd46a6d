"""Buckets: their retention, and the two system buckets."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.influx import gojson
from tests.influx.access import Caller
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.labels import shown
from tests.influx.paging import limit_of, links, page
from tests.influx.problem import Problem
from tests.influx.routing import Route
from tests.influx.state import Resource, State, now

HOUR, DAY = 3600, 86400
LONGEST = (1 << 63) // 10**9
"""Seconds that fit into 64 bits of nanoseconds; a longer time overflows to a negative one."""

_RULE = gojson.struct(
    type=gojson.text,
    everySeconds=gojson.optional(gojson.integer()),
    shardGroupDurationSeconds=gojson.optional(gojson.integer()),
)
_NEW = gojson.struct(
    orgID=gojson.identifier,
    name=gojson.text,
    description=gojson.text,
    rp=gojson.text,
    retentionRules=gojson.listing(_RULE),
)
_CHANGE = gojson.struct(
    name=gojson.optional(gojson.text),
    description=gojson.optional(gojson.text),
    retentionRules=gojson.listing(_RULE),
)


class Buckets:
    """Names are unique within an organization, with case; there is always one retention rule."""

    def __init__(self, state: State) -> None:
        self._state = state

    def routes(self) -> Sequence[Route]:
        return (
            ("POST", "/api/v2/buckets", self._create),
            ("GET", "/api/v2/buckets", self._list),
            ("GET", "/api/v2/buckets/{id}", self._read),
            ("PATCH", "/api/v2/buckets/{id}", self._change),
            ("DELETE", "/api/v2/buckets/{id}", self._delete),
        )

    def _create(self, call: Call) -> Answer:
        sent = call.read(_NEW)
        org = sent["orgID"]
        if not org:
            raise Problem("invalid", "organization id must be provided")
        rule = _only_rule(sent["retentionRules"]) or {}
        _check_name(sent["name"])
        call.caller.require("write", "buckets", org)
        if org not in self._state.orgs:
            raise Problem("not found", "organization not found")
        if self._state.names["buckets"].are_taken(org, sent["name"]):
            raise Problem("conflict", f"bucket with name {sent['name']} already exists")
        every, shard = rule.get("everySeconds") or 0, rule.get("shardGroupDurationSeconds") or 0
        _check_length(every)
        shard = max(shard, HOUR) if shard else default_shard(every)
        if 0 < every < shard:
            raise Problem("internal error", "retention policy duration must be greater than the shard duration")
        bucket = add_bucket(self._state, org, sent["name"], "user", sent["description"], every, shard)
        bucket["rp"] = sent["rp"]
        return answer(201, self._shown(bucket, labels=False))

    def _list(self, call: Call) -> Answer:
        limit = limit_of(call)
        org, id_, after = call.query_id("orgID"), call.query_id("id"), call.query_id("after")
        if not org and call.query.get("org"):
            org = self._state.named_org(call.query["org"])
        name = call.query.get("name", "")
        found = [
            bucket
            for bucket in self._state.kinds["buckets"].values()
            if org in {"", bucket["orgID"]} and id_ in {"", bucket["id"]} and name in {"", bucket["name"]}
        ]
        if (name and org and not found) or id_ not in {"", *self._state.kinds["buckets"]}:
            raise Problem("not found", f'bucket "{name or id_}" not found')
        found.sort(key=lambda bucket: bucket["name"].encode() if org else bucket["id"].encode())
        if after:
            place = next((place for place, bucket in enumerate(found) if bucket["id"] == after), len(found))
            items: Sequence[Resource] = found[place + 1 :][:limit]
        else:
            items = page(found, call)
        # The page is cut before unreadable buckets are left out, so a page can be short.
        listed = [self._shown(bucket) for bucket in items if _may_read(call.caller, bucket)]
        sent_org = "" if call.query.get("orgID") else call.query.get("org", "")
        filters = {"org": sent_org, "orgID": call.query.get("orgID", ""), "id": id_, "after": after, "bucket": name}
        return answer(200, {"links": links("/api/v2/buckets", call, len(items), filters), "buckets": listed})

    def _read(self, call: Call) -> Answer:
        bucket = self._found(call.id())
        if not _may_read(call.caller, bucket):
            call.caller.require("read", "buckets", bucket["orgID"], bucket["id"])
        return answer(200, self._shown(bucket))

    def _change(self, call: Call) -> Answer:
        id_, sent = call.id(), call.read(_CHANGE)
        rule = _only_rule(sent["retentionRules"])
        bucket = self._found(id_)
        call.caller.require("write", "buckets", bucket["orgID"], id_)
        every, shard = _changed_rule(bucket["retentionRules"][0], rule or {})
        name = bucket["name"] if sent["name"] is None else sent["name"]
        if name != bucket["name"]:
            if bucket["type"] == "system":
                raise Problem("invalid", "system buckets cannot be renamed")
            _check_name(name)
            if self._state.names["buckets"].are_taken(bucket["orgID"], name):
                raise Problem("conflict", "bucket name is not unique")
        bucket["name"] = name
        self._state.names["buckets"].record(bucket)
        if sent["description"] is not None:
            bucket["description"] = sent["description"]
        bucket["retentionRules"] = [retention(every, shard)]
        bucket["updatedAt"] = now()
        return answer(200, self._shown(bucket, labels=False))

    def _delete(self, call: Call) -> Answer:
        bucket = self._found(call.id())
        call.caller.require("write", "buckets", bucket["orgID"], bucket["id"])
        if bucket["type"] == "system":
            self._state.erased.add(bucket["id"])  # The server deletes the data before it checks the type.
            raise Problem("invalid", "system buckets cannot be deleted")
        del self._state.kinds["buckets"][bucket["id"]]
        return nothing()

    def _found(self, id_: str) -> Resource:
        bucket = self._state.kinds["buckets"].get(id_)
        if bucket is None:
            raise Problem("not found", "bucket not found")
        return bucket

    def _shown(self, bucket: Resource, labels: bool = True) -> Resource:
        """The answer for a bucket; answers to POST and PATCH have no labels."""
        return shown_bucket(bucket, self._state.labels_of("buckets", bucket["id"]) if labels else [])


def shown_bucket(bucket: Resource, labels: Sequence[Resource]) -> Resource:
    path = f"/api/v2/buckets/{bucket['id']}"
    return {
        "links": {
            **{name: f"{path}/{name}" for name in ("labels", "members", "owners")},
            "org": f"/api/v2/orgs/{bucket['orgID']}",
            "self": path,
            "write": f"/api/v2/write?org={bucket['orgID']}&bucket={bucket['id']}",
        },
        **{key: value for key, value in bucket.items() if value or key not in {"description", "rp"}},
        "labels": shown(labels),
    }


def add_bucket(state: State, org: str, name: str, type_: str, description: str, every: int, shard: int) -> Resource:
    """A new bucket in the store."""
    time = now()
    bucket: Resource = {
        "id": state.random_id(),
        "orgID": org,
        "type": type_,
        "description": description,
        "name": name,
        "retentionRules": [retention(every, shard)],
        "createdAt": time,
        "updatedAt": time,
    }
    state.kinds["buckets"][bucket["id"]] = bucket
    state.names["buckets"].record(bucket)
    return bucket


def add_system_buckets(state: State, org: str) -> None:
    """Add the system buckets of a new organization."""
    add_bucket(state, org, "_tasks", "system", "System bucket for task logs", 3 * DAY, DAY)
    add_bucket(state, org, "_monitoring", "system", "System bucket for monitoring logs", 7 * DAY, DAY)


def retention(every: int, shard: int) -> dict[str, Any]:
    return {"type": "expire", "everySeconds": every, "shardGroupDurationSeconds": shard}


def default_shard(every: int) -> int:
    """The shard duration that the server chooses."""
    if every == 0 or every >= 180 * DAY:
        return 7 * DAY
    return DAY if every >= 2 * DAY else HOUR


def _check_name(name: str) -> None:
    if name.startswith("_"):
        raise Problem("invalid", f"bucket name {name} is invalid. Buckets may not start with underscore")
    if '"' in name:
        raise Problem("invalid", f"bucket name {name} is invalid. Bucket names may not include quotation marks")


def _only_rule(rules: Sequence[Mapping[str, Any]] | None) -> Mapping[str, Any] | None:
    if not rules:
        return None
    if len(rules) > 1:
        raise Problem("unprocessable entity", "buckets cannot have more than one retention rule at this time")
    if (rules[0]["everySeconds"] or 0) < 0 or (rules[0]["shardGroupDurationSeconds"] or 0) < 0:
        raise Problem("unprocessable entity", "expiration seconds cannot be negative")
    return rules[0]


def _check_length(every: int) -> None:
    if 0 < every < HOUR or every > LONGEST:
        raise Problem("internal error", "retention policy duration must be at least 1h0m0s")


def _changed_rule(old: Mapping[str, Any], rule: Mapping[str, Any]) -> tuple[int, int]:
    """Retention and shard duration after a PATCH: a missing duration is kept, and 0 is stored as it is."""
    every, shard = rule.get("everySeconds"), rule.get("shardGroupDurationSeconds")
    if every is not None:
        _check_length(every)
    changed = every is not None or shard is not None
    every = old["everySeconds"] if every is None else every
    shard = old["shardGroupDurationSeconds"] if shard is None else shard
    if changed and 0 < every < shard:
        raise Problem(
            "unprocessable entity",
            "shard-group duration must also be updated to be smaller than new retention duration",
        )
    return every, shard


def _may_read(caller: Caller, bucket: Resource) -> bool:
    """System buckets are shown to any token that may read the organization."""
    if bucket["type"] == "system":
        return caller.may("read", "orgs", "", bucket["orgID"])
    return caller.may("read", "buckets", bucket["orgID"], bucket["id"])
