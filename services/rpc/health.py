"""Waits for a server to serve, by grpc.health.v1."""

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

_RECONNECT_MS = 50
"""Pause between attempts to connect to a server that is just starting."""


async def wait_until_serving(address: str, seconds: float) -> bool:
    """Whether the server at *address* serves within *seconds*; waits for one that is not there yet."""
    options = [
        ("grpc.initial_reconnect_backoff_ms", _RECONNECT_MS),
        ("grpc.min_reconnect_backoff_ms", _RECONNECT_MS),
        ("grpc.max_reconnect_backoff_ms", _RECONNECT_MS),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        try:
            async for answer in HealthStub(channel).Watch(HealthCheckRequest(), timeout=seconds, wait_for_ready=True):
                if answer.status == HealthCheckResponse.SERVING:
                    return True
        except grpc.aio.AioRpcError:
            return False
    return False
