"""Before or after and nothing between, whatever packages and faults come together (engine.md 10.4)."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.core.errors import TokenStale
from tests.applier.faulty import CallFault, ItemFault
from tests.applier.world import SUCCEEDED, World, check, end
from tests.apply.packages import a_rule, an_endpoint, an_object, text

descriptions = st.sampled_from(["", "one", "two"])


@st.composite
def packages(draw: st.DrawFn) -> str:
    """Few objects under few keys, so that two packages have much in common."""
    labels = draw(st.sets(st.sampled_from(["red", "green", "blue"])))
    objects: list[dict[str, Any]] = [
        an_object("Label", label, draw(st.sampled_from([label, f"{label} too"]))) for label in sorted(labels)
    ]
    some_labels = st.sets(st.sampled_from(sorted(labels))) if labels else st.just(set[str]())
    more: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "Bucket": st.fixed_dictionaries({"schemaType": st.sampled_from(["implicit", "explicit"])}),
        "Dashboard": st.just({}),
        "Task": st.fixed_dictionaries({"every": st.sampled_from(["1h", "2h"]), "query": st.just("buckets()")}),
    }
    for kind, specs in more.items():
        for name in sorted(draw(st.sets(st.sampled_from(["one", "two"])))):
            # Dashboards and tasks share their display names, buckets cannot.
            shown = name if kind == "Bucket" else "same"
            spec = draw(specs) | {"description": draw(descriptions)}
            objects.append(an_object(kind, name, shown, sorted(draw(some_labels)), **spec))
    endpoints = draw(st.dictionaries(st.sampled_from(["one", "two"]), st.sampled_from(["PagerDuty", "Slack"])))
    for name, kind in sorted(endpoints.items()):
        # Endpoints of all kinds share their names: one that becomes another kind takes two applies.
        shown = f"{kind} {name}"
        objects.append(an_endpoint(kind, name, shown, sorted(draw(some_labels)), description=draw(descriptions)))
    for name in sorted(draw(st.sets(st.sampled_from(["one", "two"])))) if endpoints else []:
        endpoint = draw(st.sampled_from(sorted(endpoints)))
        objects.append(a_rule(name, endpoint, "same", sorted(draw(some_labels)), description=draw(descriptions)))
    # A package without objects breaks a rule.
    return text(*(objects or [an_object("Label", "red", "red")]))


item_faults = st.dictionaries(st.integers(0, 24), st.sampled_from(ItemFault), max_size=3)
call_faults = st.dictionaries(st.integers(0, 10), st.sampled_from(CallFault), max_size=2)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=packages(), wanted=packages(), items=item_faults, calls=call_faults, lasting=st.booleans())
async def test_record_and_platform_agree_unless_an_event_says_where_not(
    faulty: World,
    before: str,
    wanted: str,
    items: dict[int, ItemFault],
    calls: dict[int, CallFault],
    lasting: bool,
) -> None:
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
    case.driver.heal()
    assert end(await case.apply(wanted)).state == SUCCEEDED
    now = await case.look()
    assert now.content == goal.content
    assert set(now.recorded.values()) == now.ids
