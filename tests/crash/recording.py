"""The embedded platform as a process that logs all writes in the order in which they take effect."""

import asyncio
import base64
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from pkger.driver.v1 import driver_pb2

from services.drivers.driver import Driver
from services.drivers.registry import opened as opened_driver
from services.drivers.servicer import SERVICES, DriverServicer
from services.platforms import Platform
from services.rpc.process import Service, run_process
from services.settings import Settings
from tests.older_platform import older

FILE = "writes.log"
"""The log, in the folder of the databases; a line has a request and its answer."""

_DELETED = "deleted"


class Recording(DriverServicer):
    """A driver that serves one batch at a time, and logs each."""

    def __init__(self, driver: Driver, account: Path) -> None:
        super().__init__(driver)
        self._account = account
        self._turn = asyncio.Lock()

    async def Mutate(
        self, request: driver_pb2.MutateRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> driver_pb2.MutateResponse:
        # The death of a caller cancels its call; the write must be logged all the same.
        return await asyncio.shield(asyncio.create_task(self._recorded(request, context)))

    async def _recorded(
        self, request: driver_pb2.MutateRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> driver_pb2.MutateResponse:
        async with self._turn:
            answer = await super().Mutate(request, context)
            both = (base64.b64encode(each.SerializeToString()) for each in (request, answer))
            with self._account.open("ab") as account:
                account.write(b" ".join(both) + b"\n")
        return answer


@dataclass(frozen=True, slots=True)
class Write:
    """
    One write that took effect, or a request without mutations, by which an applier shows its token.

    Attributes:
        operation: The operation that sent it; empty: the person did.
        verb: ``create``, ``update``, ``delete``, ``attach``, ``detach``, or empty for a token.
        id: The resource.
        label: Of an association: the label.
        number: How many writes the person had sent before, with any outcome.
    """

    operation: str
    verb: str = ""
    id: str = ""
    label: str = ""
    number: int = 0


def writes(folder: Path) -> list[Write]:
    """All writes to the platform whose databases are in *folder*, in order."""
    found: list[Write] = []
    by_person = 0
    for line in (folder / FILE).read_bytes().splitlines():
        asked, answered = map(base64.b64decode, line.split(b" "))
        request = driver_pb2.MutateRequest.FromString(asked)
        answer = driver_pb2.MutateResponse.FromString(answered)
        operation = request.fence.operation_id
        if not request.mutations:
            found.append(Write(operation))
        for mutation, result in zip(request.mutations, answer.results, strict=True):
            verb = str(mutation.WhichOneof("change"))
            change = getattr(mutation, verb)
            if result.HasField("done"):
                id_ = result.done.id if verb == "create" else change.id
                found.append(Write(operation, verb, id_, getattr(change, "label_id", ""), by_person))
        by_person += not operation
    return found


def made(account: Sequence[Write]) -> dict[str, str]:
    """The operation that created each resource that an operation created, by id."""
    found: dict[str, str] = {}
    for each in account:
        if each.operation and each.verb == "create":
            # A creation that is sent again gets the same id, also when another applier sends it.
            found.setdefault(each.id, each.operation)
    return found


def taken_by_person(account: Sequence[Write]) -> tuple[set[str], set[tuple[str, str]]]:
    """Ids that the person deleted, and pairs of a resource and a label that they detached from it."""
    mine = [each for each in account if not each.operation]
    return (
        {each.id for each in mine if each.verb == "delete"},
        {(each.id, each.label) for each in mine if each.verb == "detach"},
    )


def overwritten(account: Sequence[Write], planned: Mapping[str, int], labels: Collection[str]) -> list[str]:
    """
    Updates and deletions by operations of resources that the person had changed since the plan.

    Args:
        account: All writes.
        planned: How many writes the person had sent when the stored plan of an operation was made, by operation. The
            plans of other operations were made before these showed their tokens.
        labels: Ids of labels that only the person attaches. A deletion expects that no other label is attached.
    """
    shown: dict[str, int] = {}
    changed: dict[str, tuple[str, int, int]] = {}
    found = []
    for position, each in enumerate(account):
        if each.operation and not each.verb:
            shown.setdefault(each.operation, position)
        elif not each.operation:
            if each.verb in ("update", "delete") or (each.verb == "attach" and each.label in labels):
                changed[each.id] = (each.verb, position, each.number)
        elif each.verb in ("update", "delete") and each.id in changed:
            how, when, number = changed[each.id]
            is_unseen = when > shown[each.operation] or number >= planned.get(each.operation, number + 1)
            # Only a deletion notices an attached label; a deleted resource cannot be overwritten.
            is_guarded = how == "update" or (how == "attach" and each.verb == "delete")
            if is_unseen and is_guarded:
                found.append(f"{each.operation} sent {each.verb} of {each.id}, which a person changed before ({how})")
            if how == "update" or each.verb == "delete":
                del changed[each.id]
    return found


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """The platform in the database of *settings*."""
    async with opened_driver(Platform("embedded", "embedded", ""), settings.data) as driver:
        yield Service([older(Recording(driver, settings.data / FILE))], SERVICES)


if __name__ == "__main__":
    run_process("platform", opened)
