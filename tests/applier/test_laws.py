"""Before or after and nothing between, whatever packages and faults come together (engine.md 10.4)."""

import asyncio
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pkger.model.v1 import operation_pb2

from services.core.errors import OperationUnfinished, TokenStale
from tests.applier.faulty import CallFault, ItemFault, Memory
from tests.applier.packages import FRESH
from tests.applier.random_packages import packages
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, World, check, end, put_secrets

# What takes effect later than anybody waits is another matter.
prompt_faults = [fault for fault in ItemFault if fault is not ItemFault.DELAY]
item_faults = st.dictionaries(st.integers(0, 24), st.sampled_from(prompt_faults), max_size=3)
call_faults = st.dictionaries(st.integers(0, 10), st.sampled_from(CallFault), max_size=2)


@settings(settings.get_profile("faults"), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=packages(),
    wanted=packages(),
    items=item_faults,
    calls=call_faults,
    lasting=st.booleans(),
    memory=st.sampled_from(Memory),
)
async def test_record_and_platform_agree_unless_an_event_says_where_not(
    faulty: World,
    before: str,
    wanted: str,
    items: dict[int, ItemFault],
    calls: dict[int, CallFault],
    lasting: bool,
    memory: Memory,
) -> None:
    faulty.driver.memory = memory
    clean, case = faulty.case(), faulty.case()
    await asyncio.gather(clean.apply(wanted), case.apply(before))
    goal, at_first = await asyncio.gather(clean.look(), case.look())
    case.driver.fail(items, calls, lasting)
    try:
        events = await case.apply(wanted)
    except TokenStale:
        # Cut off: somebody carries it on.
        await case.settled()
    else:
        check(at_first, events, await case.look(), goal.content)
        assert not any(event.HasField("late_effects") for event in events)
    case.driver.heal()
    try:
        events = await case.apply(wanted)
    except OperationUnfinished:
        await give_up_replacement(case)
        events = await case.apply(wanted)
    assert end(events).state == SUCCEEDED
    now = await case.look()
    assert now.content == goal.content
    assert set(now.recorded.values()) == now.ids


async def give_up_replacement(case: Case) -> None:
    """
    Past the seal a resource that could not be deleted keeps the name of its replacement, whose creation is in doubt.

    Nothing that the platform says tells whose it is, so somebody has to decide.
    """
    operation = await case.operation((await case.settled()).name)
    assert operation.blocked_reason == operation_pb2.BLOCKED_REASON_CONFLICT
    steps = operation.blocked_steps
    assert steps
    assert all(each.step.HasField("create") for each in steps)
    events = await case.recover(operation.name, **{f"_{each.step.number}": "skip" for each in steps})
    assert events[-1].finished.state == SUCCEEDED


few_keys = st.sets(st.sampled_from(["a", "b", "c"]))


@settings(settings.get_profile("faults"), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=few_keys, given_keys=few_keys, items=item_faults, calls=call_faults, lasting=st.booleans())
async def test_an_apply_makes_all_secrets_that_it_is_given_or_none_and_takes_none_away(
    faulty: World,
    held: set[str],
    given_keys: set[str],
    items: dict[int, ItemFault],
    calls: dict[int, CallFault],
    lasting: bool,
) -> None:
    case, secrets = faulty.case(), dict.fromkeys(given_keys, "value")
    await put_secrets(case, dict.fromkeys(held, "old"))
    case.driver.fail(items, calls, lasting)
    with suppress(TokenStale):
        await case.apply(FRESH, secrets=secrets)
    state = (await case.settled()).state
    now = set(await case.services.secret_keys(case.org))
    if state == SUCCEEDED:
        assert now == held | given_keys
    elif state == ROLLED_BACK:
        assert now == held
    else:
        assert held <= now <= held | given_keys
    case.driver.heal()
    assert end(await case.apply(FRESH, secrets=secrets)).state == SUCCEEDED
    assert set(await case.services.secret_keys(case.org)) == held | given_keys
