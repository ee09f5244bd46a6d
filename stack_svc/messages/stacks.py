"""Stacks, revisions, resources and watches as messages."""

from collections.abc import Collection, Sequence
from typing import Any

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import policy_pb2, stack_pb2

from services.core.errors import RequestInvalid
from services.core.masking import masked
from services.core.model import Baseline, InventoryEntry, Key, ResourceKey
from services.packages.installed import PackageMove
from services.packages.package_text import KeptPackage
from services.rpc.convert.drift import counts_fields
from services.rpc.convert.objects import (
    baseline_from_pb,
    entry_fields,
    entry_from_pb,
    key_fields,
    object_fields,
    target_to_pb,
)
from services.rpc.convert.packages import declarations_to_pb, installed_to_pb
from services.rpc.convert.plans import KINDS
from services.rpc.convert.policies import checked_policy, policy_from_pb, policy_to_pb
from stack_svc.messages.fields import checked_key, storable_key, target_of, timestamp
from stack_svc.rules import sanitize, stacks
from stack_svc.rules.updates import StackUpdate
from stack_svc.rules.urls import checked_urls
from stack_svc.store.drift_checks import DriftCheck
from stack_svc.store.owners import Owner
from stack_svc.store.reservations import Reservation
from stack_svc.store.revisions import Revision
from stack_svc.store.stacks import Stack, StackFilter

MOST_CHOSEN = 1000
"""Largest number of ids or names in a request for a list of stacks (stack.proto)."""


def stack_to_pb(
    stack: Stack, drift_check: DriftCheck | None = None, reservation: Reservation | None = None
) -> stack_pb2.Stack:
    """Translate a stack without its inventory, with its last drift detection and its reservation if they are given."""
    record = stack.record
    return stack_pb2.Stack(
        id=record.id,
        target=target_to_pb(record.target),
        name=record.name,
        description=stack.description,
        generation=record.generation,
        sources=record.sources,
        create_time=timestamp(stack.create_time),
        update_time=timestamp(stack.update_time),
        resource_count=stack.resource_count,
        package_count=stack.package_count,
        revision=record.revision,
        package_digest=record.package_digest,
        policy=policy_to_pb(record.policy) if record.policy else None,
        urls=record.urls,
        etag=stacks.etag_of(stack),
        last_drift_check=_drift_check_fields(drift_check) if drift_check else None,
        reservation=_reservation_to_pb(reservation) if reservation else None,
    )


def _reservation_to_pb(reservation: Reservation) -> stack_pb2.StackReservation:
    return stack_pb2.StackReservation(
        action_set=reservation.action_set,
        operation_id=reservation.operation,
        create_time=timestamp(reservation.since),
    )


def _drift_check_fields(drift_check: DriftCheck) -> Any:
    return {
        "time": timestamp(drift_check.time),
        "generation": drift_check.generation,
        "counts": counts_fields(drift_check.counts),
    }


def revision_to_pb(revision: Revision, stack_id: str) -> stack_pb2.Revision:
    """Translate a revision, without its package; *stack_id* is the id of its stack."""
    return stack_pb2.Revision(
        stack_id=stack_id,
        number=revision.number,
        kind=KINDS.number(revision.kind),
        package_digest=revision.package_digest,
        sources=revision.sources,
        author=revision.author,
        operation_id=revision.operation,
        leftover_count=revision.leftover_count,
        rollback_of=revision.rollback_of,
        create_time=timestamp(revision.create_time),
        packages=map(move_to_pb, revision.packages),
    )


def move_to_pb(move: PackageMove) -> stack_pb2.RevisionPackage:
    """Translate a package that differs between two revisions."""
    return stack_pb2.RevisionPackage(name=move.name, old_version=move.old, new_version=move.new)


def revision_parts_to_pb(
    package: KeptPackage, is_shown: bool
) -> tuple[stack_pb2.RevisionPackages, stack_pb2.RevisionObjects]:
    """Translate the package of a revision; if it *is_shown* to people, addresses are masked."""
    objects = stack_pb2.RevisionObjects(
        objects=map(object_fields, package.objects),
        untouched=map(key_fields, sorted(package.untouched)),
        shared=(declarations_to_pb(key, each) for key, each in sorted(package.declarations.items())),
        lifecycles=(
            stack_pb2.PackageLifecycle(package=name, document_json=text)
            for name, text in sorted(package.lifecycles.items())
        ),
    )
    for item in objects.objects if is_shown else ():
        item.spec_json = masked(item.spec_json)
        for written in item.written:
            written.value_json = masked(written.value_json)
    return stack_pb2.RevisionPackages(packages=map(installed_to_pb, package.packages)), objects


def stacks_filter_from_pb(request: stack_pb2.ListStacksRequest) -> StackFilter:
    """
    Translate the filters of a list of stacks.

    Raises:
        RequestInvalid: There are too many ids or names, or a pattern that is too long for any name.
    """
    for field, values in (("stack_ids", request.stack_ids), ("names", request.names)):
        if len(values) > MOST_CHOSEN:
            raise RequestInvalid(field, f"at most {MOST_CHOSEN:,}, and not {len(values):,}")
    if len(request.name_glob) > 2 * stacks.LONGEST_NAME:
        raise RequestInvalid("name_glob", f"a pattern has at most {2 * stacks.LONGEST_NAME} characters")
    return StackFilter(
        target_of(request.target) if request.HasField("target") else None,
        frozenset(map(sanitize.clean, request.stack_ids)),
        frozenset(map(sanitize.clean, request.names)),
        sanitize.clean(request.name_glob),
    )


def stacks_from_pb(request: stack_pb2.ListRevisionsRequest) -> frozenset[str]:
    """
    Translate the ids of the stacks whose revisions are requested together.

    Raises:
        RequestInvalid: There are too many, or one stack is named in another way as well.
    """
    if request.HasField("stack"):
        raise RequestInvalid("stack", "name one stack here, or several in stack_ids, and not both")
    if len(request.stack_ids) > MOST_CHOSEN:
        raise RequestInvalid("stack_ids", f"at most {MOST_CHOSEN:,}, and not {len(request.stack_ids):,}")
    return frozenset(map(sanitize.clean, request.stack_ids))


def policy_of(message: policy_pb2.Policy) -> dict[str, Any]:
    """
    Translate the policy of a stack.

    Raises:
        RequestInvalid: It is not valid; the error names the field.
    """
    return checked_policy(policy_from_pb(message))


def update_from_pb(request: stack_pb2.UpdateStackRequest, allow_jsonnet: bool) -> StackUpdate:
    """
    Translate an update of a stack.

    Raises:
        RequestInvalid: The parser would not fetch one of the URLs, or the policy is not valid.
        EncodingInvalid: A URL is the address of a program, and programs are not evaluated.
    """
    return StackUpdate(
        request.name if request.HasField("name") else None,
        request.description if request.HasField("description") else None,
        checked_urls(request.urls.urls, "urls.urls", allow_jsonnet) if request.HasField("urls") else None,
        request.etag,
        policy_of(request.policy) if request.HasField("policy") else None,
    )


def holder_to_pb(resource: ResourceKey, owner: Owner, label_ids: Sequence[str]) -> stack_pb2.ResourceHolder:
    """Translate the owner or a user of a resource, with the ids of the labels that its record wants on it."""
    kind, resource_id = resource
    return stack_pb2.ResourceHolder(
        resource=object_pb2.ResourceId(kind=kind, id=resource_id),
        stack_id=owner.stack,
        stack_name=owner.stack_name,
        key=object_pb2.ObjectKey(kind=kind, name=owner.name),
        operation_id=owner.operation,
        since=timestamp(owner.since),
        label_ids=label_ids,
    )


def imports_from_pb(request: journal_pb2.RecordImportRequest) -> list[tuple[InventoryEntry, Baseline]]:
    """
    Translate the resources that are imported into the record.

    Raises:
        RequestInvalid: A key or an id is not valid, or not every entry has a baseline.
    """
    if len(request.entries) != len(request.baselines):
        raise RequestInvalid("baselines", f"{len(request.baselines)} do not fit {len(request.entries)} entries")
    return [_import(*each) for each in zip(request.entries, request.baselines, strict=True)]


def _import(entry: object_pb2.InventoryEntry, baseline: journal_pb2.Baseline) -> tuple[InventoryEntry, Baseline]:
    key, resource_id = checked_key(entry.key), sanitize.checked_name(entry.resource_id, "entry.resource_id")
    return (
        entry_from_pb(entry)._replace(key=key, resource_id=resource_id),
        baseline_from_pb(baseline)._replace(key=key),
    )


def storable_baseline(baseline: Baseline) -> Baseline:
    """*baseline* with a key that every store can hold."""
    return baseline._replace(key=storable_key(baseline.key))


def listed_entry(entry: InventoryEntry, lacking: Collection[Key]) -> object_pb2.InventoryEntry:
    """An entry in a list; *lacking* are the keys of entries without a baseline."""
    return object_pb2.InventoryEntry(**entry_fields(entry), lacks_baseline=entry.key in lacking)
