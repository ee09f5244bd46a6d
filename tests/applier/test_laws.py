"""All secrets or none, under any combination of faults (docs/reference/engine.md, "Tests")."""

from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.core.errors import TokenStale
from tests.applier.faulty import CallFault, ItemFault
from tests.applier.packages import FRESH
from tests.applier.world import ROLLED_BACK, SUCCEEDED, World, end, put_secrets

# Late effects have tests of their own.
prompt_faults = [fault for fault in ItemFault if fault is not ItemFault.DELAY]
item_faults = st.dictionaries(st.integers(0, 24), st.sampled_from(prompt_faults), max_size=3)
call_faults = st.dictionaries(st.integers(0, 10), st.sampled_from(CallFault), max_size=2)


few_keys = st.sets(st.sampled_from(["a", "b", "c"]))


@settings(settings.get_profile("faults"))
@given(held=few_keys, given_keys=few_keys, items=item_faults, calls=call_faults, lasting=st.booleans())
@example(held=set(), given_keys={"a"}, items={}, calls={0: CallFault.CUT_OFF}, lasting=False)
async def test_an_apply_writes_all_its_secrets_or_none_and_removes_none(
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
    operation = await case.settled()
    state, now = operation.state, set(await case.services.secret_keys(case.org))
    if state == SUCCEEDED:
        assert now == held | given_keys
    elif state == ROLLED_BACK:
        # The owner of a secret that a dead applier wrote is unknown: it stays, and is named.
        assert held <= now <= held | given_keys
        assert [key for key in now - held if f"'{key}'" not in operation.cause] == []
    else:
        assert held <= now <= held | given_keys
    case.driver.heal()
    assert end(await case.apply(FRESH, secrets=secrets)).state == SUCCEEDED
    assert set(await case.services.secret_keys(case.org)) == held | given_keys
