"""The first steps of a server: health, and the set-up that creates the first user, organization, bucket and token."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.influx import gojson
from tests.influx.access import OPERATOR
from tests.influx.authorizations import add_authorization, hashed, shown_authorization, shown_user
from tests.influx.buckets import HOUR, add_bucket, default_shard, shown_bucket
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.orgs import add_org, shown_org
from tests.influx.problem import Problem
from tests.influx.routing import Route
from tests.influx.state import Resource, State, now

VERSION = "v2.9.1"

_FORM = gojson.struct(
    username=gojson.text,
    password=gojson.text,
    org=gojson.text,
    bucket=gojson.text,
    token=gojson.text,
    retentionPeriodSeconds=gojson.integer(),
    retentionPeriodHrs=gojson.integer(),
)


class Setup:
    """Paths that need no credentials."""

    def __init__(self, state: State) -> None:
        self._state, self._started = state, now()

    def routes(self) -> Sequence[Route]:
        return (
            ("GET", "/health", self._health),
            ("GET", "/ready", self._ready),
            ("GET", "/ping", lambda _: nothing()),
            ("GET", "/api/v2", lambda _: answer(200, {"setup": "/api/v2/setup", "orgs": "/api/v2/orgs"})),
            ("GET", "/api/v2/setup", lambda _: answer(200, {"allowed": not self._state.is_set_up})),
            ("POST", "/api/v2/setup", self._set_up),
        )

    def _health(self, call: Call) -> Answer:
        shown = {"name": "influxdb", "message": "ready for queries and writes", "status": "pass", "checks": []}
        return answer(200, {**shown, "version": VERSION, "commit": "0000000000"})

    def _ready(self, call: Call) -> Answer:
        return answer(200, {"status": "ready", "started": self._started, "up": "1s"})

    def _set_up(self, call: Call) -> Answer:
        sent = call.read(_FORM, "internal error")
        if self._state.is_set_up:
            raise Problem("conflict", "onboarding has already been completed")
        missing = [name for name in ("username", "org", "bucket") if not sent[name]]
        if missing:
            fields = ",".join(missing)
            raise Problem("unprocessable entity", f"onboarding failed: missing required fields [{fields}]")
        if sent["password"] and not 8 <= len(sent["password"].encode()) <= 72:
            raise Problem("invalid", "passwords must be between 8 and 72 characters long")
        return answer(201, set_up(self._state, sent))


def set_up(state: State, form: Mapping[str, Any]) -> Resource:
    """
    The first user, organization, bucket and token.

    A retention that is too short is detected after user and organization are stored: the server is then unusable.
    """
    user = state.new_id()
    state.users[user] = form["username"]
    state.is_set_up = True
    org = add_org(state, form["org"])
    every = form["retentionPeriodSeconds"] or form["retentionPeriodHrs"] / 10**9
    if 0 < every < HOUR:
        raise Problem("internal error", "retention policy duration must be at least 1h0m0s")
    every = int(every)
    bucket = add_bucket(state, org["id"], form["bucket"], "user", "", every, default_shard(every))
    description = f"{form['username']}'s Token"
    made = add_authorization(state, org["id"], user, OPERATOR, description, token=form["token"])
    links = {"self": f"/api/v2/authorizations/{made.id}", "user": f"/api/v2/users/{user}"}
    shown = {key: value for key, value in shown_authorization(state, made).items() if key not in {"org", "user"}}
    return {
        "user": {**shown_user(state, user), "links": {"self": f"/api/v2/users/{user}"}},
        "bucket": shown_bucket(bucket, []),
        "org": shown_org(org),
        "auth": {"links": links, **shown, "token": made.token, "hashedToken": hashed(made.token)},
    }
