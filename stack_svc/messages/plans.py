"""Plans as messages."""

from collections.abc import Iterable

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import plan_pb2

from services.rpc.convert.enums import Numbers
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
        RequestInvalid: It has no name or no kind, or an attachment has no digest.
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
    )


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
