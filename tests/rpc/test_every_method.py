"""Every method of every service, made from the contracts, over each kind of listener, with each token."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from google.protobuf.descriptor_pool import Default
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from services.access.listeners import Listener, ListenerKind
from services.access.token_file import TokenFile, home_token
from services.access.tokens import new_token
from services.rpc.entrances import Entrance
from services.rpc.server import serving
from services.settings import Settings
from services.system import MachineIds
from tests.cluster import OPENED
from tests.transport import socket_in_new_folder

TOKENS = ("none", "unknown", "home", "operator")

ADMITTED = {"socket": set(TOKENS), "loopback": {"home"}, "network": {"operator"}}
"""The tokens with which each listener lets a call through."""


class Service(NamedTuple):
    """
    A service that runs.

    Attributes:
        addresses: Its addresses by kind of listener.
        methods: The full names of its methods.
    """

    addresses: dict[str, str]
    methods: list[str]


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[list[Service]]:
    """All services, each behind all kinds of listeners."""
    tokens = {ListenerKind.LOOPBACK: home_token(tmp_path), ListenerKind.NETWORK: operator_token(tmp_path)}
    running, addresses = list[Service](), dict[str, str]()
    async with AsyncExitStack() as stack:
        for name, opened in OPENED.items():
            settings = Settings(addresses, tmp_path, tmp_path, tmp_path)
            service = await stack.enter_async_context(opened(settings))
            at = stack.enter_context(socket_in_new_folder())
            entrances = [Entrance(Listener(at, ListenerKind.SOCKET))]
            entrances += [Entrance(Listener("127.0.0.1:0", kind), token) for kind, token in tokens.items()]
            bound = await stack.enter_async_context(serving(service.register, service.names, entrances, 0))
            addresses[name] = at
            running.append(Service(dict(zip(ADMITTED, bound, strict=True)), list(methods_of(service.names))))
        yield running


def operator_token(folder: Path) -> TokenFile:
    path = folder / "operator"
    path.write_text(new_token(MachineIds()))
    path.chmod(0o600)
    return TokenFile(path)


def methods_of(names: object) -> Iterator[str]:
    """The full names of the methods of services, and of health and reflection."""
    own = [Default().FindServiceByName(name) for name in names]  # type: ignore[attr-defined]
    probes = [
        health_pb2.DESCRIPTOR.services_by_name["Health"],
        reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"],
    ]
    for service in (*own, *probes):
        for method in service.methods:
            yield f"/{service.full_name}/{method.name}"


async def status(channel: grpc.aio.Channel, method: str, token: str) -> grpc.StatusCode:
    """The status of a call with an empty request; OK as soon as there is an answer."""
    metadata = [("authorization", f"Bearer {token}")] if token else None
    call: Any = channel.unary_stream(method, request_serializer=bytes)(b"", metadata=metadata)
    with suppress(grpc.aio.AioRpcError):
        if await call.read() is not grpc.aio.EOF:
            call.cancel()
            return grpc.StatusCode.OK
    code: grpc.StatusCode = await call.code()
    return code


def databases(folder: Path) -> dict[str, bytes]:
    """The content of all files of databases."""
    return {each.name: each.read_bytes() for each in folder.iterdir() if ".db" in each.name}


async def test_every_method_is_behind_the_door(services: list[Service], tmp_path: Path) -> None:
    assert sum(len(service.methods) for service in services) > 60
    tokens = {
        "none": "",
        "unknown": new_token(MachineIds()),
        "home": home_token(tmp_path).token(),
        "operator": TokenFile(tmp_path / "operator").token(),
    }
    before = databases(tmp_path)
    refused = [(kind, name) for kind in ADMITTED for name in TOKENS if name not in ADMITTED[kind]]
    assert set(before) >= {"stack.db", "platform.db"}
    for kind, name in refused:
        for service in services:
            async with grpc.aio.insecure_channel(service.addresses[kind]) as channel:
                for method in service.methods:
                    code = await status(channel, method, tokens[name])
                    is_open = method.startswith("/grpc.health.")
                    assert (code is grpc.StatusCode.UNAUTHENTICATED) is not is_open, (kind, name, method, code)
    assert databases(tmp_path) == before
    for kind, names in ADMITTED.items():
        for name in names:
            for service in services:
                async with grpc.aio.insecure_channel(service.addresses[kind]) as channel:
                    for method in service.methods:
                        code = await status(channel, method, tokens[name])
                        assert code is not grpc.StatusCode.UNAUTHENTICATED, (kind, name, method)
                        assert code is not grpc.StatusCode.INTERNAL, (kind, name, method)


async def test_a_method_that_no_service_has_is_unknown_to_everybody(services: list[Service]) -> None:
    for kind in ADMITTED:
        async with grpc.aio.insecure_channel(services[0].addresses[kind]) as channel:
            code = await status(channel, "/pkger.stack.v1.StackService/Nothing", "")
            assert code is grpc.StatusCode.UNIMPLEMENTED
