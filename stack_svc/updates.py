"""What people change of a stack: its name, its description, its URLs, its policy."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from services.core.errors import StackChanged, StackExists
from stack_svc import requests, stacks, texts
from stack_svc.requests import Request
from stack_svc.store.stacks import Choice, Named, Stack
from stack_svc.store.store import Transaction


class Update(NamedTuple):
    """
    What changes of a stack; None: it stays.

    Attributes:
        name: The new name; empty: it has none any more.
        description: The new description.
        urls: The new URLs.
        etag: The etag that the stack has to have; empty: any.
        policy: The new policy, which is accepted.
    """

    name: str | None = None
    description: str | None = None
    urls: tuple[str, ...] | None = None
    etag: str = ""
    policy: Mapping[str, Any] | None = None

    def of(self, stack: Stack) -> Stack:
        """The stack with these changes."""
        record = stack.record
        return replace(
            stack,
            record=replace(
                record,
                name=record.name if self.name is None else self.name,
                urls=record.urls if self.urls is None else self.urls,
                policy=record.policy if self.policy is None else self.policy,
            ),
            description=stack.description if self.description is None else texts.clean(self.description),
        )


def update(tx: Transaction, choice: Choice, wanted: Update, request: Request) -> Stack:
    """
    Change what people say of a stack, once for each request; where nothing changes, nothing is written.

    Raises:
        RequestInvalid: The new name is no name for a stack.
        RequestIdReused: The request id was used with other content.
        StackNotFound: There is no such stack, or its first apply is not over.
        StackChanged: It has another etag.
        StackExists: Another stack has the name.
        OperationUnfinished: The name is taken by an apply that waits to be recovered, or the policy is to change, and
            an operation on the stack waits.
        StackLeased: The policy is to change, and an operation is at work on the stack.
    """
    stacks.check_new_name(wanted.name or "")
    found = tx.lock_stack(choice)
    named = Named(found.record.target, wanted.name) if found and wanted.name else None
    taken = tx.lock_stack(named) if named else None
    now = tx.now()
    # Before anything else: by its old name, nobody finds a stack that this request has renamed before.
    if made := requests.earlier_answer(tx, request, now):
        return stacks.existing(tx, made)
    stack = stacks.active(found, choice)
    if wanted.etag and wanted.etag != stacks.etag_of(stack):
        raise StackChanged(stack.called, wanted.etag, stacks.etag_of(stack))
    changed = wanted.of(stack)
    if changed != stack:
        if named and taken and taken.record.id != stack.record.id:
            stacks.give_way(tx, taken, named, now)
        # Clocks are set back at times; a record is never updated before it was made.
        changed = replace(changed, version=stack.version + 1, update_time=max(now, stack.update_time))
        if not tx.stacks.edit(changed):
            raise StackExists(changed.record.name, changed.record.target.org)
        if changed.record.policy != stack.record.policy:
            # What was planned before may delete what is protected now.
            stacks.refuse_worked_on(tx, stack, now)
            moved = replace(changed.record, generation=stack.record.generation + 1)
            changed = replace(changed, record=moved)
            tx.stacks.update(changed)
    requests.remember(tx, request, stack.record.id, now)
    return changed
