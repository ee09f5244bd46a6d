"""The four services that the gateway calls: one connection each."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from services.rpc.channel import Connect, grpc_channel
from services.rpc.client import Peer
from services.rpc.sent_token import SentToken, no_token
from services.system import Ids, MachineIds
from services.times import Times


@dataclass(frozen=True, slots=True)
class Services:
    """
    Connections to the services.

    Attributes:
        parser: Reads packages.
        planner: Makes plans and exports.
        applier: Runs plans.
        stack: Stores stacks.
    """

    parser: Peer
    planner: Peer
    applier: Peer
    stack: Peer

    @property
    def all(self) -> tuple[Peer, ...]:
        """All services, in the order in which an apply uses them."""
        return self.parser, self.planner, self.applier, self.stack


@asynccontextmanager
async def connected(
    addresses: Mapping[str, str],
    connect: Connect = grpc_channel,
    ids: Ids = MachineIds(),
    times: Times = Times(),
    token: SentToken = no_token,
) -> AsyncIterator[Services]:
    """
    Connect to the services, until the block is left.

    Args:
        addresses: Their addresses, by name.
        connect: Makes the channels.
        ids: Draws request ids for calls that belong to no request.
        times: How long calls wait.
        token: Returns the token of calls to ports.
    """
    peers = {
        name: Peer(name, addresses[name], connect=connect, ids=ids, times=times, token=token)
        for name in ("parser", "planner", "applier", "stack")
    }
    try:
        yield Services(**peers)
    finally:
        for peer in peers.values():
            await peer.close()
