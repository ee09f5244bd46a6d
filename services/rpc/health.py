"""Asks servers for their health, by grpc.health.v1."""

from collections.abc import AsyncIterator

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

_RECONNECT_MS = 50
"""Pause between attempts to connect to a server that is starting."""

_NO_ANSWER = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)

_OPTIONS = [
    *((f"grpc.{name}_reconnect_backoff_ms", _RECONNECT_MS) for name in ("initial", "min", "max")),
    ("grpc.use_local_subchannel_pool", 1),
]


async def problem_of(address: str, seconds: float, wait: bool = False) -> str:
    """
    Why the server at *address* is not healthy; empty when it is.

    Args:
        address: The address of the server.
        seconds: Timeout of the request.
        wait: Return only a healthy state: wait for a server that does not run or is not ready.
    """
    problem = f"{address} does not answer"
    async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
        try:
            async for answer in _answers(HealthStub(channel), seconds, wait):
                if answer.status == HealthCheckResponse.SERVING:
                    return ""
                problem = f"{address} is {HealthCheckResponse.ServingStatus.Name(answer.status)}"
        except grpc.aio.AioRpcError as error:
            if error.code() not in _NO_ANSWER:
                problem = f"{address} answers with an error"
            return f"{problem}: {error.code().name}"
    return problem


async def _answers(stub: HealthStub, seconds: float, wait: bool) -> AsyncIterator[HealthCheckResponse]:
    """The state of a server, and if *wait*, each change of it: a server lets few clients watch."""
    if not wait:
        yield await stub.Check(HealthCheckRequest(), timeout=seconds)
        return
    async for answer in stub.Watch(HealthCheckRequest(), timeout=seconds, wait_for_ready=True):
        yield answer
