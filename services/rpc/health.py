"""Asks servers whether they serve, by grpc.health.v1."""

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

_RECONNECT_MS = 50
"""Pause between attempts to connect to a server that is just starting."""

_OPTIONS = [
    *((f"grpc.{name}_reconnect_backoff_ms", _RECONNECT_MS) for name in ("initial", "min", "max")),
    ("grpc.use_local_subchannel_pool", 1),
]


async def problem_of(address: str, seconds: float, wait: bool = False) -> str:
    """
    What keeps the server at *address* from serving; empty when it serves.

    Args:
        address: Whom to ask.
        seconds: How long to wait for the answer at most.
        wait: Take only "it serves" for an answer: wait for a server that is not there yet, or not ready.
    """
    problem = f"{address} does not answer"
    async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
        # A watch tells the state of now first, and then every other one.
        answers = HealthStub(channel).Watch(HealthCheckRequest(), timeout=seconds, wait_for_ready=wait)
        try:
            async for answer in answers:
                if answer.status == HealthCheckResponse.SERVING:
                    return ""
                problem = f"{address} is {HealthCheckResponse.ServingStatus.Name(answer.status)}"
                if not wait:
                    return problem
        except grpc.aio.AioRpcError as error:
            return f"{problem}: {error.code().name}"
    return problem
