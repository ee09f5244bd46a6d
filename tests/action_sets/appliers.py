"""Further appliers of a world, and services of it that do not answer for a while."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import applier_svc.__main__ as applier
from applier_svc.execution.timeouts import Timeouts
from services.rpc.client import Peer
from services.settings import Settings
from services.times import Times
from tests.action_sets.functions import Script
from tests.action_sets.world import World
from tests.applier.world import QUICK
from tests.transport import InMemory, through, transport_of_loop

GRACE = 5.0
"""Seconds that a further applier waits for its operations when it is told to stop."""


@asynccontextmanager
async def further_applier(
    here: World, folder: Path, script: Script | None = None, timeouts: Timeouts = QUICK, **settings: Any
) -> AsyncIterator[World]:
    """
    The services of *here* with another applier, which is told to stop at the end of the block.

    Args:
        here: The services, whose own applier goes on.
        folder: The folder of the services.
        script: What its functions do; None: as those of *here*.
        timeouts: Its timeouts.
        settings: Fields of its settings.
    """
    transport, functions = transport_of_loop(), (script or here.script).table()
    opened = through(transport, partial(applier.opened, timeouts=timeouts, functions=functions))
    fields: dict[str, Any] = {"times": Times(grace=GRACE), "repository_folders": None, **settings}
    async with (
        opened(Settings(here.services.addresses, folder, folder, folder, **fields)) as service,
        transport.serving(service) as address,
        Peer("applier", address, connect=transport.connect) as peer,
    ):
        services = replace(here.services, peers={**here.services.peers, "applier": peer})
        yield replace(here, services=services, script=script or here.script)


@asynccontextmanager
async def out_of_reach(here: World, service: str) -> AsyncIterator[None]:
    """Nothing answers at the address of a service while the block is open."""
    transport, address = transport_of_loop(), here.services.addresses[service]
    assert isinstance(transport, InMemory)
    with transport.out_of_reach(address):
        yield
