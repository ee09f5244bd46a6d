"""Updates of a stack by users: its name, description, URLs and policy."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from services.core.errors import PackageStack, StackChanged, StackExists
from stack_svc.rules import requests, reservations, sanitize, stacks
from stack_svc.rules.requests import RequestId
from stack_svc.store.stacks import Choice, Stack, StackName
from stack_svc.store.store import Transaction


class StackUpdate(NamedTuple):
    """
    The new values of fields of a stack; None: the field stays as it is.

    Attributes:
        name: The new name; empty: the stack has none any more.
        description: The new description.
        urls: The new URLs.
        etag: The etag that the stack must have; empty: any.
        policy: The new policy, validated.
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
            description=stack.description if self.description is None else sanitize.clean(self.description),
        )


def update(tx: Transaction, choice: Choice, changes: StackUpdate, request: RequestId) -> Stack:
    """
    Update a stack, once for each request; if nothing changes, nothing is written.

    Raises:
        RequestInvalid: The new name is no name for a stack.
        RequestIdReused: The request id was used with other content.
        StackNotFound: There is no such stack, or its first apply has not ended.
        StackChanged: It has another etag.
        PackageStack: It has installed packages, and is to have URLs.
        StackExists: Another stack has the name.
        OperationUnfinished: A first apply that has to be recovered has the name, or the policy changes while an
            operation on the stack has to be recovered.
        StackLeased: The policy changes while an operation runs on the stack, or name or policy while an action set has
            it reserved; or one has the new name reserved.
    """
    stacks.check_new_name(changes.name or "")
    locked = tx.lock_stack(choice)
    named = StackName(locked.record.target, changes.name) if locked and changes.name else None
    taken = tx.lock_stack(named) if named else None
    now = tx.now()
    # Checked first: if this request has renamed the stack, its old name no longer finds it.
    if earlier_id := requests.earlier_answer(tx, request, now):
        return stacks.existing(tx, earlier_id)
    stack = stacks.active(locked, choice)
    if changes.etag and changes.etag != stacks.etag_of(stack):
        raise StackChanged(stack.called, changes.etag, stacks.etag_of(stack))
    if changes.urls and stack.package_count:
        raise PackageStack(
            stack.called, "has installed packages, and therefore no URLs; change its packages, or use another stack"
        )
    changed = changes.of(stack)
    if changed != stack:
        if changed.record.name != stack.record.name:
            reservations.refuse_reserved(tx, stack)
        if named and not (taken and taken.record.id == stack.record.id):
            stacks.free_name(tx, taken, named, now)
        # A clock may be set back; ``update_time`` is never before ``create_time``.
        changed = replace(changed, version=stack.version + 1, update_time=max(now, stack.update_time))
        if not tx.stacks.edit(changed):
            raise StackExists(changed.record.name, changed.record.target.org)
        if changed.record.policy != stack.record.policy:
            # An earlier plan may delete a resource that the new policy protects, so plans become stale.
            stacks.refuse_in_use(tx, stack, now)
            moved = replace(changed.record, generation=stack.record.generation + 1)
            changed = replace(changed, record=moved)
            tx.stacks.update(changed)
    requests.store_answer(tx, request, stack.record.id, now)
    return changed
