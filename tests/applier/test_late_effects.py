"""What took effect after nobody waited for it any more is told at the end, and never silently left (engine.md 5)."""

from collections.abc import Mapping, Sequence

import pytest

from applier_svc.ids import Ids
from applier_svc.late_effects import late_effects
from applier_svc.outcomes import Done, Failed, GivenUp, Outcome, Unknown
from applier_svc.progress import Progress
from applier_svc.undo import inverse
from services.core.model import (
    LABEL,
    Identity,
    InventoryEntry,
    Key,
    KindTraits,
    NameUniqueness,
    Origin,
    Plan,
    PlatformTraits,
    Resource,
    Step,
    Target,
    Undo,
    Verb,
)
from services.kinds.canonical import spec_of
from tests.applier.faulty import ItemFault, Memory
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Events, World, end, plan_of, told
from tests.apply.packages import an_object, text

KEY, RED = Key("Task", "roll"), Key(LABEL, "red")
OLD, NEW = (spec_of({"name": "roll", "every": every}) for every in ("1h", "2h"))
PLATFORM = PlatformTraits(
    "remote",
    "1",
    {kind: KindTraits(kind, Identity.SEARCH, NameUniqueness.NONE, 1, Undo.RECREATE) for kind in ("Task", LABEL)},
    10,
    1,
)
CREATE = Step(0, 0, Verb.CREATE, KEY, new_spec=NEW)
UPDATE = Step(0, 0, Verb.UPDATE, KEY, "t1", old_spec=OLD, new_spec=NEW)
DELETE = Step(0, 0, Verb.DELETE, KEY, "t1", old_spec=OLD, undo=Undo.RECREATE)
ATTACH = Step(0, 0, Verb.ATTACH, KEY, "t1", label=RED, label_id="l1")
DONE = Done("t1")
REFUSED = Failed("no", 1)  # type: ignore[arg-type]
LOST = Failed("it gave no answer, and it did not happen")

OLD_ONE, NEW_ONE = Resource("Task", "t1", OLD), Resource("Task", "t1", NEW)
SECOND, SECOND_OLD = Resource("Task", "t2", NEW), Resource("Task", "t2", OLD)
LABELLED = Resource("Task", "t1", OLD, ("l1",))

EXTRA = "t2: it may have been created late: no stack owns it"
GONE = "t1: it is gone"
CHANGED = "t1: it is not as the operation left it"


@pytest.mark.parametrize(
    ("step", "outcome", "undone", "live", "expected"),
    [
        pytest.param(CREATE, DONE, None, [NEW_ONE], [], id="as it was left"),
        pytest.param(CREATE, DONE, None, [NEW_ONE, SECOND], [EXTRA], id="a second one"),
        pytest.param(CREATE, DONE, None, [NEW_ONE, SECOND_OLD], [], id="a second one that is another"),
        pytest.param(CREATE, LOST, None, [SECOND], [EXTRA], id="one that did not happen"),
        pytest.param(CREATE, REFUSED, None, [SECOND], [], id="one that was refused"),
        pytest.param(CREATE, GivenUp("so be it"), None, [SECOND], [EXTRA], id="one that was given up"),
        pytest.param(CREATE, None, None, [SECOND], [], id="one that was not sent"),
        pytest.param(CREATE, DONE, DONE, [], [], id="one that was taken back"),
        pytest.param(CREATE, DONE, DONE, [SECOND], [EXTRA], id="one that came back"),
        pytest.param(UPDATE, DONE, None, [NEW_ONE], [], id="an update that stands"),
        pytest.param(UPDATE, DONE, None, [OLD_ONE], [CHANGED], id="an update that was overwritten"),
        pytest.param(UPDATE, DONE, DONE, [OLD_ONE], [], id="an update that was taken back"),
        pytest.param(UPDATE, DONE, DONE, [NEW_ONE], [CHANGED], id="an update that came back"),
        pytest.param(UPDATE, LOST, None, [NEW_ONE], [CHANGED], id="an update that happened after all"),
        pytest.param(UPDATE, Unknown("?"), None, [NEW_ONE], [], id="an update of which nobody knows"),
        pytest.param(UPDATE, LOST, None, [], [GONE], id="an update of what is gone"),
        pytest.param(DELETE, LOST, None, [OLD_ONE], [], id="a deletion that did not happen"),
        pytest.param(DELETE, LOST, None, [], [GONE], id="a deletion that happened after all"),
        pytest.param(DELETE, DONE, None, [], [], id="a deletion"),
        pytest.param(DELETE, DONE, DONE, [OLD_ONE], [], id="a deletion that was taken back"),
        pytest.param(DELETE, DONE, DONE, [OLD_ONE, SECOND_OLD], [EXTRA], id="a deletion that was taken back twice"),
        pytest.param(ATTACH, DONE, None, [LABELLED], [], id="a label"),
        pytest.param(ATTACH, DONE, None, [OLD_ONE], ["t1: it lost its label red"], id="a label that is gone"),
        pytest.param(ATTACH, DONE, DONE, [LABELLED], ["t1: it got back its label red"], id="a label that came back"),
    ],
)
def test_what_is_not_as_it_was_left_is_told(
    step: Step, outcome: Outcome | None, undone: Outcome | None, live: Sequence[Resource], expected: Sequence[str]
) -> None:
    plan = Plan(
        target=Target(),
        stack_id="1",
        base_generation=1,
        stages=("only",),
        steps=(step,),
        resource_diffs=(),
        label_mapping_diffs=(),
        inventory=(InventoryEntry(RED, "l1", Origin.CREATED),),
        no_change=False,
        summary="{}",
    )
    ids = Ids(plan)
    outcomes: Mapping[Step, Outcome | None] = {step: outcome, inverse(step): undone}
    for each, ended in outcomes.items():
        if isinstance(ended, Done):
            ids.note(each, ended.remote_id)
    progress = Progress(done={0: outcome} if outcome else {}, undone={0: undone} if undone else {})
    found = late_effects(plan, progress, ids, live, {("Task", "t1")}, PLATFORM)
    assert [f"{each.remote_id}: {each.message}" for each in found] == expected
    progress.before_ids[0] = ("t2",)
    found = late_effects(plan, progress, ids, live, {("Task", "t1")}, PLATFORM)
    assert [f"{each.remote_id}: {each.message}" for each in found] == [each for each in expected if each != EXTRA]


ONE = text(an_object("Task", "roll", "roll", every="1h", query="buckets()"))
RED_ONE = text(an_object("Label", "red", "red"))
FAILING = text(an_object("Label", "red", "crimson"), an_object("Bucket", "reserved", "_system"))


def late(events: Events) -> list[str]:
    """What was told before the end."""
    assert events[-2].HasField("late_effects")
    return list(told(events)[-2])


async def test_a_creation_that_arrives_late_is_told(faulty: World) -> None:
    faulty.driver.memory = Memory.NOTHING
    case = faulty.case()
    case.driver.fail({0: ItemFault.DELAY})
    # The plan, what was there before, what became of it, and what is there at the end.
    case.driver.arrive_before_look(3)
    events = await case.apply(ONE)
    assert end(events).state == SUCCEEDED
    assert late(events) == ["late: Task roll: it may have been created late: no stack owns it"]
    [effect] = events[-2].late_effects.effects
    now = await case.look()
    assert now.ids - set(now.recorded.values()) == {("Task", effect.remote_id)}
    assert case.driver.looks == 5


async def test_a_write_that_arrives_after_it_was_taken_back_is_told(faulty: World) -> None:
    faulty.driver.memory = Memory.NOTHING
    case = await faulty.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.DELAY})
    # The plan, and what is there at the end.
    case.driver.arrive_before_look(1)
    events = await case.apply(FAILING)
    assert end(events).state == ROLLED_BACK
    assert late(events) == ["late: Label red: it is not as the operation left it"]
    assert plan_of(events).steps[0].key.name == "red"


async def test_that_nobody_could_look_is_told(faulty: World) -> None:
    faulty.driver.memory = Memory.NOTHING
    case = await faulty.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    case.driver.hide(look=1)
    events = await case.apply(text(an_object("Label", "red", "crimson")))
    assert end(events).state == SUCCEEDED
    assert "nobody could look" in events[-2].late_effects.problem


@pytest.mark.parametrize("memory", [Memory.KEYS, Memory.NAMES])
async def test_a_platform_that_fences_is_not_looked_at_again(faulty: World, memory: Memory) -> None:
    faulty.driver.memory = memory
    case = await faulty.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    assert end(await case.apply(text(an_object("Label", "red", "crimson")))).state == SUCCEEDED
    assert case.driver.looks == 1
