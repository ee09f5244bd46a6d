"""What the door of a listener costs: a call through it, in turn with the same call of a server without doors."""

import logging
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from bench.figures import Figure
from services.access.listeners import Listener, ListenerKind
from services.access.token_file import home_token
from services.rpc.dispatcher import Dispatcher
from services.rpc.entrances import Entrance
from services.rpc.process import Service
from services.rpc.server import serving
from services.settings import Settings
from stack_svc.__main__ import opened

ROUNDS = 7


async def door(calls: int) -> list[Figure]:
    """The figures, each of some rounds of so many calls, of which the median round counts."""
    # The log of each call would be most of its time.
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory(prefix="pkger-") as folder:
        home = Path(folder)
        token = home_token(home)
        entrances = [
            Entrance(Listener(f"unix:{home}/door", ListenerKind.SOCKET)),
            Entrance(Listener("127.0.0.1:0", ListenerKind.LOOPBACK), token),
        ]
        async with (
            opened(Settings({}, home, home, home)) as service,
            serving(service.register, service.names, entrances, 0) as (socket, port),
            _open_server(service, f"unix:{home}/open") as (open_socket, open_port),
        ):
            sent = (("authorization", f"Bearer {token.token()}"),)
            rounds = [
                (
                    await _seconds(open_socket, calls),
                    await _seconds(socket, calls),
                    await _seconds(open_port, calls, sent),
                    await _seconds(port, calls, sent),
                )
                for _ in range(ROUNDS)
            ]
    logging.disable(logging.NOTSET)
    open_at_socket, at_socket, open_at_port, at_port = map(statistics.median, zip(*rounds, strict=True))
    return [
        Figure("a call through the door of a socket", "", _compared(at_socket, open_at_socket), "1.10 times"),
        Figure("a call through the door of a port", "", _compared(at_port, open_at_port), "1.10 times"),
    ]


def _compared(through: float, without: float) -> str:
    return f"{through * 1e6:,.0f} µs, {through / without:.2f} times one without a door"


@asynccontextmanager
async def _open_server(service: Service, socket: str) -> AsyncIterator[tuple[str, str]]:
    """A server of the same service without a door; its socket and its port."""
    server, handlers = grpc.aio.server(), Dispatcher(service.register).handlers
    for method, handler in handlers.items():
        name, _, call = method[1:].partition("/")
        server.add_registered_method_handlers(name, {call: handler})
    server.add_insecure_port(socket)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield socket, f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def _seconds(address: str, calls: int, metadata: Any = ()) -> float:
    """The mean time of a call that lists no stacks."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub, request = StackServiceStub(channel), stack_pb2.ListStacksRequest()
        for _ in range(20):
            await stub.ListStacks(request, metadata=metadata)
        began = time.perf_counter()
        for _ in range(calls):
            await stub.ListStacks(request, metadata=metadata)
        return (time.perf_counter() - began) / calls
