"""Values that the conformance suites write."""

from dataclasses import replace
from typing import Any

from services.core.model import InventoryEntry, Key, OperationKind, Origin, StackRecord, Target
from services.engine.operation import OperationState
from services.packages.installed import InstalledPackage
from services.packages.versions import Version
from stack_svc.store.operations import Operation
from stack_svc.store.plans import PlanState, StoredPlan
from stack_svc.store.stacks import Stack, State
from stack_svc.store.store import Store

HERE = Target()


def a_stack(stack_id: str = "s1", name: str = "prod", target: Target = HERE, **fields: Any) -> Stack:
    stack = Stack(StackRecord(stack_id, target, name, 0), "text", State.ACTIVE, 5, 6)
    return replace(stack, **fields)


def an_operation(name: str = "operation-1", stack: str = "s1", **fields: Any) -> Operation:
    operation = Operation(
        name, stack, False, "prod", HERE, OperationKind.APPLY, OperationState.PREPARING, "me", 7, 10, 10
    )
    return replace(operation, **fields)


def a_plan(name: str = "plan-1", **fields: Any) -> StoredPlan:
    plan = StoredPlan(
        name,
        "s1",
        "prod",
        HERE,
        "d",
        3,
        OperationKind.APPLY,
        4,
        "",
        "",
        0,
        False,
        PlanState.PENDING,
        "",
        "",
        10,
        expires=20,
    )
    return replace(plan, **fields)


def an_entry(name: str, resource_id: str = "", **fields: Any) -> InventoryEntry:
    entry = InventoryEntry(Key("Bucket", name), resource_id or f"id-{name}", Origin.CREATED)
    return entry._replace(**fields)


def a_package(name: str, version: str = "1.0.0", content_digest: str = "", **fields: Any) -> InstalledPackage:
    """A package of the repository *main*."""
    package = InstalledPackage(name, Version.parse(version), "main", content_digest=content_digest)
    return replace(package, **fields)


HEADER = b"header"


async def with_stack(store: Store, *more: Stack) -> None:
    for stack in (a_stack(), *more):
        await store.write(lambda tx, stack=stack: tx.stacks.insert(stack))  # type: ignore[misc]
