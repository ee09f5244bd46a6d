"""The planner as a process: ``python -m planner_svc``."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import metadata

from planner_svc.drift.inputs import DriftReader
from planner_svc.export.inputs import ExportReader
from planner_svc.inputs import PlanInputs
from planner_svc.package_servicer import PackageServicer
from planner_svc.package_stack.desired_packages import PackageStackInputs
from planner_svc.packages.inputs import PackageInputs
from planner_svc.packages.resolving import PackageResolver
from planner_svc.repositories.reader import RepositorySource
from planner_svc.servicer import SERVICES, registrations
from planner_svc.store_plan import PlanStore
from services.packages.versions import Version
from services.platforms import read_platforms
from services.rpc.call import MESSAGE_LIMIT
from services.rpc.channel import Connect, grpc_channel
from services.rpc.client import Peer, Platforms
from services.rpc.process import Service, run_process
from services.rpc.sent_token import service_token
from services.settings import Settings
from services.system import Ids, MachineIds


@asynccontextmanager
async def opened(
    settings: Settings, connect: Connect = grpc_channel, ids: Ids = MachineIds(), limit: int = MESSAGE_LIMIT
) -> AsyncIterator[Service]:
    """
    The planner with its connections to the parser, the stack service and the platforms.

    Args:
        settings: The settings.
        connect: Makes the channels to the other services.
        ids: Draws ids of plans and request ids.
        limit: Largest message, in bytes, between the services.
    """

    token = service_token(settings)

    def peer(name: str) -> Peer:
        return Peer(name, settings.addresses[name], connect=connect, ids=ids, times=settings.times, token=token)

    async with AsyncExitStack() as stack:
        stacks = await stack.enter_async_context(peer("stack"))
        parser = await stack.enter_async_context(peer("parser"))
        platforms = await stack.enter_async_context(
            Platforms(read_platforms(settings), connect, ids, settings.times, token)
        )
        reader, exports = PlanInputs(parser, stacks, platforms), ExportReader(stacks, platforms)
        drift = DriftReader(reader, stacks)
        inputs = PackageInputs(parser, stacks, RepositorySource.of(settings))
        resolver = PackageResolver(inputs, _own_version(), settings.resolution_seconds)
        packages, package_stacks = PackageServicer(inputs, resolver), PackageStackInputs(reader, inputs, resolver)
        plans = PlanStore(stacks, ids)
        yield Service(registrations(reader, plans, exports, drift, packages, package_stacks, limit), SERVICES)


def _own_version() -> Version:
    """The release of pkger that runs here: the numbers of its distribution, without what PEP 440 allows after them."""
    numbers = re.match(r"[0-9]+(\.[0-9]+){2}", metadata.version("pkger"))
    return Version.parse(numbers[0] if numbers else "0.0.0")


if __name__ == "__main__":
    run_process("planner", opened)
