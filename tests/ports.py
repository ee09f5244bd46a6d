"""The services of a home as other programs reach them: at ports of this machine, which demand the token of the home."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from services.access.listeners import Listener, ListenerKind
from services.access.token_file import TokenFile, home_token
from services.rpc.entrances import Entrance
from services.rpc.process import Service
from services.rpc.server import serving
from services.settings import PORTS, address_variable
from tests.cluster import Cluster, cluster
from tests.transport import Grpc, socket_entrance, socket_in_new_folder


@dataclass(frozen=True)
class Home:
    """
    The services of a home.

    Attributes:
        services: They, at their sockets.
        ports: Their addresses for other programs, by name.
        folder: ``PKGER_HOME``.
    """

    services: Cluster
    ports: Mapping[str, str]
    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables of a program that calls them; its token is in no variable."""
        addresses = {address_variable(name): address for name, address in self.ports.items()}
        return {"PKGER_HOME": str(self.folder), **addresses}

    def at_ports(self, script: str) -> str:
        """*script* with these services in place of those at the default ports."""
        for name, port in PORTS.items():
            script = script.replace(f"127.0.0.1:{port}", self.ports[name])
        return script


class _SocketsAndPorts(Grpc):
    """Serves at sockets, and at ports as well."""

    def __init__(self, token: TokenFile) -> None:
        super().__init__()
        self.port_of: dict[str, str] = {}
        self._token = token

    @asynccontextmanager
    async def serving(self, service: Service, grace: float = 1.0) -> AsyncIterator[str]:
        with socket_in_new_folder() as address:
            port = Entrance(Listener("127.0.0.1:0", ListenerKind.LOOPBACK), self._token)
            entrances = [socket_entrance(address), port]
            async with serving(
                service.register, service.names, entrances, grace, service.drain, service.loops
            ) as addresses:
                self.port_of[address] = addresses[1]
                yield address


@asynccontextmanager
async def home_at_ports(folder: Path) -> AsyncIterator[Home]:
    """Run the services of the home *folder*."""
    transport = _SocketsAndPorts(home_token(folder))
    async with cluster(folder, transport=transport) as services:
        ports = {name: transport.port_of[address] for name, address in services.addresses.items()}
        yield Home(services, ports, folder)
