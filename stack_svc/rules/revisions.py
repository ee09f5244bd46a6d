"""The history of a stack: each operation that changes it makes a revision, and the newest ones are retained."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from services.core.diff import changes
from services.core.errors import RequestInvalid, RevisionNotFound
from services.core.model import DiffStatus, LabelMappingDiff, PlanDiffs, ResourceDiff, StackRecord
from services.kinds.policy import HISTORY
from services.packages.installed import InstalledPackage, PackageMove
from services.packages.package_text import KeptPackage
from stack_svc.store.operations import Operation
from stack_svc.store.plans import StoredPlan
from stack_svc.store.revisions import Revision
from stack_svc.store.stacks import Stack
from stack_svc.store.store import ReadTransaction, Transaction


def after(
    tx: Transaction,
    operation: Operation,
    plan: StoredPlan,
    moves: Sequence[PackageMove],
    installed: Iterable[InstalledPackage],
    record: StackRecord,
    leftover_count: int,
    now: int,
) -> StackRecord:
    """
    Add the revision of *operation*, which succeeded.

    Args:
        tx: The store.
        operation: The operation.
        plan: Its plan.
        moves: The packages that it changed.
        installed: The packages of its stack after the operation; the store retains their contents with the revision.
        record: The record of its stack after the operation.
        leftover_count: Number of its leftovers.
        now: The time.

    Returns:
        The record with the new revision.
    """
    number = record.revision + 1
    revision = Revision(
        number,
        operation.kind,
        plan.package_digest,
        record.sources,
        operation.author,
        operation.id,
        leftover_count,
        plan.rollback_of,
        now,
        tuple(moves),
    )
    tx.revisions.add(record.id, revision)
    tx.revision_contents.add(record.id, number, {each.content_digest for each in installed if each.content_digest})
    tx.revisions.prune(record.id, number - record.policy.get("history", HISTORY) + 1)
    return replace(record, revision=number, package_digest=plan.package_digest)


def existing(reading: ReadTransaction, stack: Stack, number: int, field: str = "revision") -> Revision:
    """
    Read one revision of *stack*.

    Raises:
        RequestInvalid: *number* is below 1; the error names *field*.
        RevisionNotFound: It never existed, or was removed.
    """
    if number < 1:
        raise RequestInvalid(field, f"{number} is no revision: they are counted from 1")
    revision = reading.revisions.find(stack.record.id, number)
    if revision is None:
        lowest, highest = reading.revisions.bounds(stack.record.id)
        kept = "" if not highest else str(lowest) if lowest == highest else f"{lowest} to {highest}"
        raise RevisionNotFound(stack.called, number, kept)
    return revision


def differences(old: KeptPackage, new: KeptPackage) -> PlanDiffs:
    """The differences between the packages *old* and *new*, without equal objects."""
    before, after_ = old.applied, new.applied
    diffs, mappings = [], []
    for key in sorted(before.keys() | after_.keys()):
        left, right = before.get(key), after_.get(key)
        status = DiffStatus.EXISTS if left and right else DiffStatus.NEW if right else DiffStatus.REMOVE
        sides = (left.spec if left else None, right.spec if right else None)
        fields = changes(left.spec, right.spec) if left and right else ()
        if fields or status is not DiffStatus.EXISTS:
            diffs.append(ResourceDiff(key, "", status, *sides, fields))
        labels = (frozenset(left.associations) if left else frozenset(), frozenset(right.associations if right else ()))
        for label in sorted(labels[0] ^ labels[1]):
            label_status = DiffStatus.NEW if label in labels[1] else DiffStatus.REMOVE
            mappings.append(LabelMappingDiff(label_status, key, "", label, ""))
    return PlanDiffs(tuple(diffs), tuple(mappings))
