"""A plan with more deletions and data losses than a request or a policy allows does not run (max_deletes)."""

from collections.abc import Awaitable, Callable

import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2

from services.core.errors import DeletesExceeded, RequestInvalid
from tests.applier.history import roll_back
from tests.applier.test_policies import set_policy
from tests.applier.world import SUCCEEDED, Case, Events, World, end
from tests.apply.packages import an_object, text
from tests.cluster import after_begun

RULES = [{"type": "expire", "everySeconds": 3600}]
BEFORE = text(
    an_object("Bucket", "b", "raw", retentionRules=[]), *(an_object("Label", each, f"label {each}") for each in "klm")
)
AFTER = text(an_object("Bucket", "b", "raw", retentionRules=RULES), an_object("Label", "k", "label k"))
"""After BEFORE: two deletions, and one update that loses data."""

SENTENCE = (
    "the plan deletes 2 resources and has 1 update that loses data, and {0} allows at most 2 of both together; nothing"
    " was written. Raise max_deletes of {0}, or apply a part of the changes first"
)


async def is_unchanged(case: Case) -> bool:
    """Whether the platform holds BEFORE."""
    return [each.kind for each in (await case.look()).resources] == ["Bucket", "Label", "Label", "Label"]


async def uninstalled(case: Case, limit: int) -> Events:
    peer = case.services.peers["applier"]
    request = applier_pb2.UninstallStackRequest(
        stack=object_pb2.StackRef(target=object_pb2.Target(org=case.org), name=case.stack),
        run_options=applier_pb2.RunOptions(max_deletes=limit),
    )
    stream = peer.stream(ApplierServiceStub(peer.channel).UninstallStack, request)
    return await case.collected(after_begun(stream))


async def applied_plan(case: Case, limit: int) -> Events:
    return await case.apply_plan(await case.plan(AFTER), max_deletes=limit)


CALLS: dict[str, tuple[Callable[[Case, int], Awaitable[Events]], int]] = {
    "Apply": (lambda case, limit: case.apply(AFTER, max_deletes=limit), 3),
    "ApplyPlan": (applied_plan, 3),
    "UninstallStack": (uninstalled, 4),
    "RollbackStack": (lambda case, limit: roll_back(case, 1, max_deletes=limit), 3),
}
"""The calls that run a plan, each with the number of deletions and losses of its plan."""


@pytest.mark.parametrize("method", CALLS)
async def test_a_plan_with_more_deletions_and_losses_than_the_request_allows_is_refused(
    faulty: World, method: str
) -> None:
    call, count = CALLS[method]
    case = await faulty.case_with(AFTER if method == "RollbackStack" else BEFORE)
    if method == "RollbackStack":
        assert end(await case.apply(BEFORE)).state == SUCCEEDED
    with pytest.raises(DeletesExceeded):
        await call(case, count - 1)
    assert await is_unchanged(case)
    assert end(await call(case, count)).state == SUCCEEDED


async def test_the_refusal_says_what_the_plan_does_and_which_limit_it_exceeds(faulty: World) -> None:
    case = await faulty.case_with(BEFORE)
    with pytest.raises(DeletesExceeded) as caught:
        await case.apply(AFTER, max_deletes=2)
    assert str(caught.value) == SENTENCE.format("the request")
    assert caught.value.metadata == {"deletes": "2", "losses": "1", "limit": "2", "stack": ""}
    with pytest.raises(RequestInvalid, match=r"run_options\.max_deletes: -1 is negative"):
        await case.apply(AFTER, max_deletes=-1)


async def test_the_policy_limits_every_call_and_the_plan_can_be_shown(faulty: World) -> None:
    case = await faulty.case_with(BEFORE)
    await set_policy(case, max_deletes=2)
    for limit in (2, 1000):
        with pytest.raises(DeletesExceeded):
            await case.apply(AFTER, max_deletes=limit)
    with pytest.raises(DeletesExceeded) as caught:
        await case.uninstall()
    assert caught.value.metadata == {"deletes": "4", "losses": "0", "limit": "2", "stack": case.stack}
    plan = await case.plan(AFTER)
    assert (
        "an apply of this plan is refused: it deletes 2 resources and has 1 update that loses data, and the policy"
        " allows at most 2 (max_deletes)"
    ) in plan.warnings
    with pytest.raises(DeletesExceeded) as caught:
        await case.apply_plan(plan)
    assert str(caught.value) == SENTENCE.format(f"the policy of stack {case.stack!r}")
    assert await is_unchanged(case)
    await set_policy(case, max_deletes=3)
    assert end(await case.apply(AFTER)).state == SUCCEEDED


async def test_a_limit_of_nothing_allows_all_other_steps(faulty: World) -> None:
    case = await faulty.case_with(AFTER)
    await set_policy(case, max_deletes=0)
    assert (await case.plan(BEFORE)).warnings == []
    assert end(await case.apply(BEFORE, max_deletes=0)).state == SUCCEEDED
