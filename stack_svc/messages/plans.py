"""Plans as messages."""

from collections.abc import Iterable

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import package_change_pb2, plan_pb2

from services.core.errors import RequestInvalid
from services.packages.installed import InstalledPackage
from services.packages.versions import ParseProblem
from services.rpc.convert.enums import Numbers
from services.rpc.convert.packages import installed_from_pb
from services.rpc.convert.plans import KINDS
from stack_svc.messages.fields import target_of, timestamp
from stack_svc.rules import sanitize
from stack_svc.rules.plans import NewPlan
from stack_svc.store.plans import Part, PlanState, StoredPlan

_PLAN_STATE = Numbers(PlanState, plan_pb2.PlanState, "PLAN_STATE")


def plan_from_pb(plan: journal_pb2.NewPlan, attachments: Iterable[journal_pb2.Attachment] = ()) -> NewPlan:
    """
    Translate a plan to be stored, with its short *attachments*.

    Raises:
        RequestInvalid: It has no name or no kind, an attachment has no digest, or a package that it changes occurs
            twice or cannot be recorded.
    """
    header, counts = plan.header, plan.header.counts
    return NewPlan(
        id=sanitize.checked_name(header.id, "plan.header.id"),
        stack=header.stack_id,
        stack_name=header.stack_name,
        target=target_of(header.target),
        digest=header.digest,
        base_generation=header.base_generation,
        kind=KINDS.member(header.kind),
        step_count=sum(
            (counts.creates, counts.updates, counts.deletes, counts.attaches, counts.detaches, counts.secrets)
        ),
        package_digest=header.package_digest,
        baselines_digest=plan.baselines_digest,
        rollback_of=header.rollback_of,
        creates_nameless_stack=plan.creates_nameless_stack,
        message=header.SerializeToString(),
        parts=tuple(Part(each.view, each.part, each.masked_part) for each in plan.parts),
        attachments={sanitize.checked_name(each.digest, "attachments.digest"): each.body for each in attachments},
        packages=_packages(header.packages),
    )


def _packages(planned: Iterable[package_change_pb2.PlannedPackage]) -> dict[str, InstalledPackage | None]:
    packages: dict[str, InstalledPackage | None] = {}
    for number, change in enumerate(planned):
        field = f"plan.header.packages[{number}]"
        name = sanitize.checked_name(change.name, f"{field}.name")
        if name in packages:
            raise RequestInvalid(f"{field}.name", f"the plan changes {name!r} twice")
        packages[name] = _recorded(change, f"{field}.record") if change.HasField("record") else None
    return packages


def _recorded(change: package_change_pb2.PlannedPackage, field: str) -> InstalledPackage:
    record = change.record
    if record.name != change.name:
        raise RequestInvalid(f"{field}.name", f"must be {change.name!r}, the name of the package")
    for name in ("repository", "digest", "content_digest"):
        if text := getattr(record, name):
            sanitize.checked_name(text, f"{field}.{name}")
    try:
        return installed_from_pb(record)
    except ParseProblem as problem:
        raise RequestInvalid(field, str(problem)) from None


def plan_to_pb(plan: StoredPlan, header: bytes) -> plan_pb2.Plan:
    """Translate a plan: its *header* as it was stored, with its state, its operation and its times."""
    message = plan_pb2.Plan.FromString(header)
    message.id = plan.id
    message.state = _PLAN_STATE.number(plan.state)
    message.operation_id = plan.operation
    message.create_time.CopyFrom(timestamp(plan.create_time))
    if plan.expires is not None:
        message.expire_time.CopyFrom(timestamp(plan.expires))
    return message
