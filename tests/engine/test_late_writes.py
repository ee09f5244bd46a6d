"""Late effects: differences between the end of an operation and the platform (docs/reference/engine.md, "Recovery")."""

from collections.abc import Sequence

import pytest

from services.core.model import (
    LABEL,
    Identity,
    InventoryEntry,
    Key,
    KindTraits,
    NameUniqueness,
    Origin,
    PlatformTraits,
    Resource,
    Step,
    Undo,
    Verb,
)
from services.engine.late_writes import late_writes
from services.engine.outcome import Done, Failed, GivenUp, Outcome, RejectionReason, Unknown
from services.kinds.format.canonical import spec_of
from tests.engine.plans import a_plan, progress_of

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
REFUSED, TAKEN = Failed("no", RejectionReason.CONTENT_REFUSED), Failed("no", RejectionReason.NAME_TAKEN)
LOST = Failed("it got no response, and had no effect")

OLD_ONE, NEW_ONE = Resource("Task", "t1", OLD), Resource("Task", "t1", NEW)
SECOND, SECOND_OLD = Resource("Task", "t2", NEW), Resource("Task", "t2", OLD)
LABELLED = Resource("Task", "t1", OLD, ("l1",))

EXTRA = "t2: it may have been created late: no stack owns it"
GONE = "t1: it is gone"
CHANGED = "t1: it differs from the end of the operation"


@pytest.mark.parametrize(
    ("step", "outcome", "undone", "live", "expected"),
    [
        pytest.param(CREATE, DONE, None, [NEW_ONE], [], id="as at the end"),
        pytest.param(CREATE, DONE, None, [NEW_ONE, SECOND], [EXTRA], id="a second one"),
        pytest.param(CREATE, DONE, None, [NEW_ONE, SECOND_OLD], [], id="a second one that is another"),
        pytest.param(CREATE, LOST, None, [SECOND], [EXTRA], id="one without effect"),
        pytest.param(CREATE, REFUSED, None, [SECOND], [], id="one that was rejected"),
        pytest.param(CREATE, TAKEN, None, [SECOND], [EXTRA], id="one whose name was taken when it was sent again"),
        pytest.param(CREATE, GivenUp("so be it"), None, [SECOND], [EXTRA], id="one that was given up"),
        pytest.param(CREATE, None, None, [SECOND], [], id="one that was not sent"),
        pytest.param(CREATE, DONE, DONE, [], [], id="one that was undone"),
        pytest.param(CREATE, DONE, DONE, [SECOND], [EXTRA], id="one that came back"),
        pytest.param(UPDATE, DONE, None, [NEW_ONE], [], id="an update that stands"),
        pytest.param(UPDATE, DONE, None, [OLD_ONE], [CHANGED], id="an update that was overwritten"),
        pytest.param(UPDATE, DONE, DONE, [OLD_ONE], [], id="an update that was undone"),
        pytest.param(UPDATE, DONE, DONE, [NEW_ONE], [CHANGED], id="an update that came back"),
        pytest.param(UPDATE, LOST, None, [NEW_ONE], [CHANGED], id="an update that took effect late"),
        pytest.param(UPDATE, Unknown("?"), None, [NEW_ONE], [], id="an update with an unknown outcome"),
        pytest.param(UPDATE, LOST, None, [], [GONE], id="an update of a resource that is gone"),
        pytest.param(DELETE, LOST, None, [OLD_ONE], [], id="a deletion without effect"),
        pytest.param(DELETE, LOST, None, [], [GONE], id="a deletion that took effect late"),
        pytest.param(DELETE, DONE, None, [], [], id="a deletion"),
        pytest.param(DELETE, DONE, DONE, [OLD_ONE], [], id="a deletion that was undone"),
        pytest.param(DELETE, DONE, DONE, [OLD_ONE, SECOND_OLD], [EXTRA], id="a deletion that was undone twice"),
        pytest.param(ATTACH, DONE, None, [LABELLED], [], id="a label"),
        pytest.param(ATTACH, DONE, None, [OLD_ONE], ["t1: it lost its label red"], id="a label that is gone"),
        pytest.param(ATTACH, DONE, DONE, [LABELLED], ["t1: it got back its label red"], id="a label that came back"),
    ],
)
def test_differences_from_the_end_of_an_operation_are_reported(
    step: Step, outcome: Outcome | None, undone: Outcome | None, live: Sequence[Resource], expected: Sequence[str]
) -> None:
    plan = a_plan(step, entries=[InventoryEntry(RED, "l1", Origin.CREATED)])
    for before_ids in ((), ("t2",)):
        done, was_undone = {0: outcome} if outcome else {}, {0: undone} if undone else {}
        progress = progress_of(plan, done, was_undone, {0: before_ids})
        found = late_writes(progress, live, {("Task", "t1")}, PLATFORM)
        reported = [each for each in expected if each != EXTRA] if before_ids else expected
        assert [f"{each.resource_id}: {each.message}" for each in found] == reported


def test_a_label_that_moves_to_a_replacement_is_no_difference() -> None:
    """It is detached from the deleted resource, and attached to the new one."""
    detach = Step(0, 0, Verb.DETACH, KEY, "t1", label=RED, label_id="l1")
    attach = Step(0, 0, Verb.ATTACH, KEY, label=RED, label_id="l1")
    plan = a_plan(detach, DELETE, CREATE, attach, entries=[InventoryEntry(RED, "l1", Origin.CREATED)])
    progress = progress_of(plan, {0: DONE, 1: DONE, 2: Done("t2"), 3: Done("t2")})

    def messages(*labels: str) -> list[str]:
        live = [Resource("Task", "t2", NEW, labels)]
        return [each.message for each in late_writes(progress, live, {("Task", "t2")}, PLATFORM)]

    assert messages("l1") == []
    assert messages() == ["it lost its label red"]
