"""
Edits of the resources of a running operation: none is overwritten (docs/reference/engine.md, "Cases", case
4).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from pkger.model.v1 import object_pb2, operation_pb2

from services.core.errors import InUse
from tests.applier.test_blocked import ended
from tests.applier.test_cancel import in_the_middle_of
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, Case, Events, World, end
from tests.apply.packages import a_rule, an_endpoint, an_object, text
from tests.drivers.client import attach, create, delete, update

CHANGED = operation_pb2.REJECTION_REASON_CHANGED
CONFLICT = operation_pb2.BLOCKED_REASON_CONFLICT
OURS = text(an_object("Label", "l", "sensors", color="#000001"), an_object("Bucket", "b", "raw", description="old"))
NEXT = text(an_object("Label", "l", "sensors", color="#000002"), an_object("Bucket", "b", "raw", description="new"))
FAILING = text(an_object("Label", "l", "sensors", color="#000002"), an_object("Bucket", "b", "_system"))
"""The label is updated, and then the platform rejects the name of the bucket."""


async def resource(case: Case, kind: str) -> object_pb2.Resource:
    [found] = [each for each in (await case.look()).resources if each.kind == kind]
    return found


async def edit(case: Case, kind: str, how: str) -> None:
    """Edit the only resource of a kind, as a person does."""
    found = await resource(case, kind)
    spec = json.loads(found.spec_json)
    match how:
        case "edits":
            change = update(kind, found.id, {**spec, "description": "theirs"})
        case "renames":
            change = update(kind, found.id, {**spec, "name": "theirs"})
        case _:
            change = delete(kind, found.id)
    assert (await case.driver.change(case.org, change)).results[0].HasField("done")


def reasons(events: list[operation_pb2.OperationEvent]) -> list[int]:
    outcomes = [outcome for event in events for outcome in event.steps_ended.outcomes]
    return [outcome.failed.reason for outcome in outcomes if outcome.HasField("failed")]


@pytest.mark.parametrize("how", ["edits", "renames"])
async def test_an_edit_before_the_step_is_sent_stays(faulty: World, how: str) -> None:
    case = await faulty.case_with(OURS)
    events, mine, opened = await in_the_middle_of(case, 0, NEXT)
    await edit(case, "Bucket", how)
    theirs = await resource(case, "Bucket")
    opened.set()
    await mine

    assert (end(events).state, reasons(events)) == (ROLLED_BACK, [CHANGED])
    field = "/description" if how == "edits" else "/name"
    assert f'{field} is "theirs", expected' in end(events).cause
    assert await resource(case, "Bucket") == theirs
    assert json.loads((await resource(case, "Label")).spec_json)["color"] == "#000001"


async def test_a_resource_deleted_before_its_step_is_sent_is_not_created_again(faulty: World) -> None:
    case = await faulty.case_with(OURS)
    events, mine, opened = await in_the_middle_of(case, 0, NEXT)
    await edit(case, "Bucket", "deletes")
    opened.set()
    await mine
    assert end(events).state == ROLLED_BACK
    assert [each.kind for each in (await case.look()).resources] == ["Label"]


async def blocked_by_an_edit(faulty: World) -> tuple[Case, str, object_pb2.Resource]:
    """A blocked operation that updated a label, which was edited then; its name, and the edited resource."""
    case = await faulty.case_with(OURS)
    events, mine, opened = await in_the_middle_of(case, 1, FAILING)
    await edit(case, "Label", "edits")
    theirs = await resource(case, "Label")
    opened.set()
    await mine
    assert end(events).state == BLOCKED
    [step] = (await case.operation(events[0].operation_id)).blocked_steps
    assert (step.reason, step.found_resource_id) == (CONFLICT, theirs.id)
    assert '/description is "theirs", expected ""' in step.message
    return case, events[0].operation_id, theirs


@pytest.mark.parametrize("way", ["retry", "keep", "skip"])
async def test_an_edit_before_the_undo_stays(faulty: World, way: str) -> None:
    case, name, theirs = await blocked_by_an_edit(faulty)
    assert await resource(case, "Label") == theirs
    state = ended(await case.recover(name, _0=way)).state
    assert state == (BLOCKED if way == "retry" else ROLLED_BACK)
    assert await resource(case, "Label") == theirs


@pytest.mark.parametrize("kind", ["Bucket", "Label"])
async def test_the_undo_of_a_detachment_needs_no_decision_if_label_or_resource_was_deleted(
    faulty: World, kind: str
) -> None:
    label, variable = an_object("Label", "l", "sensors"), an_object("Variable", "v", "v", type="constant", values=["a"])
    before = text(label, an_object("Bucket", "b", "raw", ["l"]), variable)
    case = await faulty.case_with(before)
    # The label is detached, and then the variable deleted.
    events, mine, opened = await in_the_middle_of(case, 1, text(label, an_object("Bucket", "b", "raw")))
    await edit(case, kind, "deletes")
    await faulty.services.cancel(events[0].operation_id)
    opened.set()
    await mine

    assert end(events).state == ROLLED_BACK
    assert {each.kind for each in (await case.look()).resources} == {"Bucket", "Label", "Variable"} - {kind}
    assert end(await case.apply(before)).state == SUCCEEDED
    assert await is_labelled(case)


async def test_the_undo_of_an_update_needs_no_decision_if_the_resource_was_deleted(faulty: World) -> None:
    case = await faulty.case_with(OURS)
    events, mine, opened = await in_the_middle_of(case, 1, FAILING)
    await edit(case, "Label", "deletes")
    opened.set()
    await mine

    assert end(events).state == ROLLED_BACK
    assert [each.kind for each in (await case.look()).resources] == ["Bucket"]
    assert end(await case.apply(OURS)).state == SUCCEEDED


async def test_an_undo_that_lacks_another_resource_needs_a_decision(faulty: World) -> None:
    """The endpoint that the undo needs was deleted; the rule still exists."""
    slack, pager = an_endpoint("Slack", "chat", "chat"), an_endpoint("PagerDuty", "pager", "pager")
    variable = an_object("Variable", "v", "v", type="constant", values=["a"])
    case = await faulty.case_with(text(slack, pager, a_rule("alarm", "chat"), variable))
    # The rule is updated, and then the variable deleted.
    events, mine, opened = await in_the_middle_of(case, 1, text(slack, pager, a_rule("alarm", "pager")))
    await edit(case, "NotificationEndpointSlack", "deletes")
    await faulty.services.cancel(events[0].operation_id)
    opened.set()
    await mine
    assert end(events).state == BLOCKED


async def is_labelled(case: Case) -> bool:
    """Whether the only bucket has the only label."""
    return list((await resource(case, "Bucket")).label_ids) == [(await resource(case, "Label")).id]


async def test_a_forced_undo_overwrites_an_edit(faulty: World) -> None:
    case, name, _ = await blocked_by_an_edit(faulty)
    assert ended(await case.recover(name, _0="force")).state == ROLLED_BACK
    label = json.loads((await resource(case, "Label")).spec_json)
    assert (label["color"], label["description"]) == ("#000001", "")


async def test_a_created_resource_that_was_labelled_since_is_not_deleted(faulty: World) -> None:
    case = await faulty.case_with(text(an_object("Label", "l", "sensors")))
    package = text(
        an_object("Label", "l", "sensors"), an_object("Dashboard", "d", "board"), an_object("Bucket", "b", "_system")
    )
    case.driver.batch_size = 1
    gates = [case.driver.gate(call) for call in range(2)]
    events, is_made = Events(), asyncio.Event()

    async def gathered() -> Events:
        async for event in case.events(package):
            events.append(event)
            if any(outcome.HasField("done") for outcome in event.steps_ended.outcomes):
                is_made.set()
        return await case.planned(events)

    task = asyncio.create_task(gathered())
    for gate in gates:
        await gate.reached.wait()
    creates = [each.create.kind for each in case.driver.sent]
    gates[creates.index("Dashboard")].opened.set()
    await is_made.wait()
    board, label = await resource(case, "Dashboard"), await resource(case, "Label")
    await case.driver.change(case.org, attach("Dashboard", board.id, label.id))
    gates[creates.index("Bucket")].opened.set()
    await task
    faulty.driver.batch_size = None

    assert end(events).state == BLOCKED
    [step] = (await case.operation(events[0].operation_id)).blocked_steps
    assert f"label {label.id} was attached" in step.message
    assert ended(await case.recover(events[0].operation_id, **{f"_{step.step.number}": "keep"})).state == ROLLED_BACK
    assert board.id in {each.id for each in (await case.look()).resources}


async def test_an_edit_made_while_no_applier_runs_stays(faulty: World) -> None:
    case = await faulty.case_with(OURS)
    _, mine, opened = await in_the_middle_of(case, 0, NEXT)
    await edit(case, "Bucket", "edits")
    theirs = await resource(case, "Bucket")
    mine.cancel()
    opened.set()
    assert (await case.settled()).state == ROLLED_BACK
    assert await resource(case, "Bucket") == theirs
    assert end(await case.apply(NEXT)).state == SUCCEEDED


async def test_a_mutation_says_what_it_expects(faulty: World) -> None:
    case = await faulty.case_with(OURS)
    await case.apply(text(an_object("Label", "l", "sensors", color="#000003")))
    expected = [
        (mutation.update if mutation.HasField("update") else mutation.delete).expect
        for mutation in case.driver.sent
        if mutation.HasField("update") or mutation.HasField("delete")
    ]
    assert {json.loads(each.spec_json)["name"] for each in expected} == {"sensors", "raw"}


USED = text(an_object("Label", "l", "sensors"), an_endpoint("Slack", "chat", "chat"))


async def used(faulty: World) -> tuple[Case, Case]:
    """A stack with a label and an endpoint, which a person made a bucket and a rule of another stack use."""
    case = await faulty.case_with(USED)
    theirs = replace(case, stack="theirs")
    package = text(
        an_object("Bucket", "b", "raw"), an_endpoint("PagerDuty", "pager", "pager"), a_rule("alarm", "pager")
    )
    assert end(await theirs.apply(package)).state == SUCCEEDED
    live = {each.kind: each for each in (await case.look()).resources}
    rule, chat = live["NotificationRule"], live["NotificationEndpointSlack"]
    wired = [object_pb2.Reference(pointer="/endpointName", kind=chat.kind, id=chat.id)]
    changes = [
        attach("Bucket", live["Bucket"].id, live["Label"].id),
        update(rule.kind, rule.id, json.loads(rule.spec_json), wired),
    ]
    assert [each.WhichOneof("result") for each in (await case.driver.change(case.org, *changes)).results] == [
        "done"
    ] * 2
    case.driver.heal()
    return case, theirs


async def test_what_resources_of_other_stacks_use_is_not_deleted(faulty: World) -> None:
    """Case 5: a person attached the label, and wired the rule."""
    case, theirs = await used(faulty)
    before = await case.look()

    another = text(an_object("Variable", "v", "v", type="constant", values=["a"]))
    attempts: tuple[Callable[[], Awaitable[object]], ...] = (lambda: case.apply(another), case.uninstall)
    for refused in attempts:
        with pytest.raises(InUse) as caught:
            await refused()
        assert caught.value.metadata["count"] == "2"
        assert "Label 'l' is attached to Bucket 'raw' of stack 'theirs'" in str(caught.value)
        assert "'chat' is referred to by NotificationRule" in str(caught.value)

    assert await case.look() == before
    assert case.driver.calls == 0
    assert end(await theirs.uninstall()).state == SUCCEEDED
    assert end(await case.uninstall()).state == SUCCEEDED


async def test_an_unowned_resource_loses_its_reference_to_a_deleted_one(faulty: World) -> None:
    case = await faulty.case_with(text(an_object("Label", "l", "sensors")))
    made = await case.driver.change(case.org, create("Bucket", {"name": "theirs"}))
    label = await resource(case, "Label")
    await case.driver.change(case.org, attach("Bucket", made.results[0].done.id, label.id))
    assert end(await case.uninstall()).state == SUCCEEDED
    assert [list(each.label_ids) for each in (await case.look()).resources] == [[]]
