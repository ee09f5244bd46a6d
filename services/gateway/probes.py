"""Whether the gateway is there, and the services behind it; what there is; who asks."""

import asyncio
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
from services.machine import Clock, machine_clock
from services.rpc.client import Peer

HEALTH_SECONDS = 2.0
"""How long a service may take to say how it is."""

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
"""What there is, by name."""


class Probes:
    """Answers that need no organisation."""

    def __init__(self, services: Services, version: str, clock: Clock = machine_clock) -> None:
        self._services, self._version, self._clock = services, version, clock
        self._started = clock()

    async def health(self, request: HttpRequest) -> Answer:
        """How the services are: ``fail`` with the name of each that does not serve."""
        problems = await asyncio.gather(*(_problem(peer) for peer in self._services.all))
        told = [
            f"{peer.name}: {problem}" for peer, problem in zip(self._services.all, problems, strict=True) if problem
        ]
        document = {
            "name": "pkger",
            "message": "; ".join(told) or "ready for packages and stacks",
            "status": "fail" if told else "pass",
            "checks": [
                {"name": peer.name, "message": problem, "status": "fail" if problem else "pass"}
                for peer, problem in zip(self._services.all, problems, strict=True)
            ],
            "version": self._version,
            "commit": "",
        }
        if not told:
            return json_answer(document)
        headers = {"X-Platform-Error-Code": str(Code.UNAVAILABLE), "Retry-After": "1"}
        return json_answer({**document, "code": Code.UNAVAILABLE}, 503, headers)

    async def ping(self, request: HttpRequest) -> Answer:
        """That the gateway is there; the headers of every answer have the version."""
        return Answer(204)

    async def ready(self, request: HttpRequest) -> Answer:
        """Since when the gateway is there."""
        started = datetime.fromtimestamp(self._started / 1e6, UTC).isoformat(timespec="microseconds")
        up = go_duration((self._clock() - self._started) * 1000)
        return json_answer({"status": "ready", "started": started.replace("+00:00", "Z"), "up": up})

    async def links(self, request: HttpRequest) -> Answer:
        """What there is."""
        return json_answer(LINKS)

    async def setup(self, request: HttpRequest) -> Answer:
        """That there is nothing to set up."""
        return json_answer({"allowed": False})

    async def me(self, request: HttpRequest) -> Answer:
        """Who asks."""
        name = request.principal or "anonymous"
        own_id = sha256(f"principal/{name}".encode()).hexdigest()[:16]
        return json_answer({"links": {"self": "/api/v2/me"}, "id": own_id, "name": name, "status": "active"})

    async def sign_in(self, request: HttpRequest) -> Answer:
        """That there are no passwords here."""
        told = "there are no user names and passwords here: use a token, such as influx config create --token TOKEN"
        raise Problem(Code.NOT_FOUND, told)


async def _problem(peer: Peer) -> str:
    """What keeps a service from serving; empty when it serves."""
    try:
        answer = await peer.call(HealthStub(peer.channel).Check, HealthCheckRequest(), seconds=HEALTH_SECONDS)
    except PkgerError as error:
        return error.metadata.get("problem", str(error))
    if answer.status == HealthCheckResponse.SERVING:
        return ""
    return f"it says {HealthCheckResponse.ServingStatus.Name(answer.status)}"
