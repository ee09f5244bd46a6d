"""Health and readiness of the gateway and the services, the list of routes, and the name of the client."""

import asyncio
import logging
from datetime import UTC, datetime
from hashlib import sha256

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.core.errors import PkgerError
from services.gateway.answers import Answer, Code, json_answer
from services.gateway.errors import Problem
from services.gateway.http_request import HttpRequest
from services.gateway.services import Services
from services.kinds.format.durations import go_duration
from services.rpc.client import Peer
from services.system import Clock, machine_clock

log = logging.getLogger("pkger.http")

HEALTH_SECONDS = 2.0
"""Timeout of the health check of a service."""

LINKS = {
    "links": {"self": "/api/v2"},
    "me": "/api/v2/me",
    "orgs": "/api/v2/orgs",
    "setup": "/api/v2/setup",
    "stacks": "/api/v2/stacks",
    "swagger": "/api/v2/swagger.json",
    "templates": {"apply": "/api/v2/templates/apply", "export": "/api/v2/templates/export"},
    "system": {"health": "/health", "ping": "/ping", "ready": "/ready"},
}
"""Paths of the routes, by name."""


class Probes:
    """The handlers of routes that need no organization."""

    def __init__(self, services: Services, version: str, clock: Clock = machine_clock) -> None:
        self._services, self._version, self._clock = services, version, clock
        self._started = clock()

    async def health(self, request: HttpRequest) -> Answer:
        """Report the health of the services: ``fail``, with the name of each service that does not serve."""
        problems = await asyncio.gather(*(_problem(peer) for peer in self._services.all))
        failures = [
            f"{peer.name}: {problem}" for peer, problem in zip(self._services.all, problems, strict=True) if problem
        ]
        document = {
            "name": "pkger",
            "message": "; ".join(failures) or "ready for packages and stacks",
            "status": "fail" if failures else "pass",
            "checks": [
                {"name": peer.name, "message": problem, "status": "fail" if problem else "pass"}
                for peer, problem in zip(self._services.all, problems, strict=True)
            ],
            "version": self._version,
            "commit": "",
        }
        if not failures:
            return json_answer(document)
        headers = {"X-Platform-Error-Code": str(Code.UNAVAILABLE), "Retry-After": "1"}
        return json_answer({**document, "code": Code.UNAVAILABLE}, 503, headers)

    async def ping(self, request: HttpRequest) -> Answer:
        """Answer that the gateway runs; the headers of every answer have the version."""
        return Answer(204)

    async def ready(self, request: HttpRequest) -> Answer:
        """Report when the gateway started, and how long it has run."""
        started = datetime.fromtimestamp(self._started / 1e6, UTC).isoformat(timespec="microseconds")
        up = go_duration((self._clock() - self._started) * 1000)
        return json_answer({"status": "ready", "started": started.replace("+00:00", "Z"), "up": up})

    async def links(self, request: HttpRequest) -> Answer:
        """List the routes."""
        return json_answer(LINKS)

    async def setup(self, request: HttpRequest) -> Answer:
        """Answer that no setup is needed."""
        return json_answer({"allowed": False})

    async def me(self, request: HttpRequest) -> Answer:
        """Return the name of the client."""
        name = request.principal or "anonymous"
        own_id = sha256(f"principal/{name}".encode()).hexdigest()[:16]
        return json_answer({"links": {"self": "/api/v2/me"}, "id": own_id, "name": name, "status": "active"})

    async def sign_in(self, request: HttpRequest) -> Answer:
        """Refuse to sign in with a password."""
        message = "pkger has no user names and passwords: use a token, such as influx config create --token TOKEN"
        raise Problem(Code.NOT_FOUND, message)


async def _problem(peer: Peer) -> str:
    """Why a service does not serve, for clients without a token, so without paths; empty when it serves."""
    try:
        answer = await peer.call(HealthStub(peer.channel).Check, HealthCheckRequest(), seconds=HEALTH_SECONDS)
    except PkgerError as error:
        log.warning("a service is not healthy", extra={"service": peer.name, "problem": str(error)})
        return "it does not answer"
    if answer.status == HealthCheckResponse.SERVING:
        return ""
    return f"its health is {HealthCheckResponse.ServingStatus.Name(answer.status)}"
