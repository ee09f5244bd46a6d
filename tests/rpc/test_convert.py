"""Values of the core and their messages: there and back is where one started."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2

from services.core import model
from services.core.errors import RequestInvalid
from services.kinds.canonical import spec_of
from services.rpc.convert import drivers, objects, plans
from tests import strategies


def an_object(item: model.Object) -> object_pb2.Object:
    """An object as it stands in a package."""
    return object_pb2.Package(objects=[objects.object_fields(item)]).objects[0]


def an_entry(entry: model.InventoryEntry) -> object_pb2.InventoryEntry:
    """An entry as it stands in an inventory."""
    return plan_pb2.Plan(inventory=[objects.entry_fields(entry)]).inventory[0]


def a_step(step: model.Step) -> plan_pb2.Step:
    """A step as it stands in a plan."""
    return plan_pb2.Plan(steps=[plans.step_fields(step)]).steps[0]


ROUND_TRIPS: list[tuple[st.SearchStrategy[Any], Callable[[Any], Message], Callable[[Any], Any]]] = [
    (strategies.targets, objects.target_to_pb, objects.target_from_pb),
    (strategies.keys, objects.key_to_pb, objects.key_from_pb),
    (strategies.objects, an_object, objects.object_from_pb),
    (strategies.packages, objects.package_to_pb, objects.package_from_pb),
    (strategies.violations, objects.violation_to_pb, objects.violation_from_pb),
    (strategies.credentials, objects.credential_to_pb, objects.credential_from_pb),
    (strategies.resources, objects.resource_to_pb, objects.resource_from_pb),
    (strategies.entries, an_entry, objects.entry_from_pb),
    (strategies.steps, a_step, plans.step_from_pb),
    (strategies.platform_traits, drivers.platform_to_pb, drivers.platform_from_pb),
]


@pytest.mark.parametrize(
    ("values", "to_pb", "from_pb"), ROUND_TRIPS, ids=[to_pb.__name__ for _, to_pb, _ in ROUND_TRIPS]
)
@given(data=st.data())
def test_a_value_survives_the_wire(
    values: st.SearchStrategy[Any],
    to_pb: Callable[[Any], Message],
    from_pb: Callable[[Any], Any],
    data: st.DataObject,
) -> None:
    value = data.draw(values)
    message = to_pb(value)
    received = type(message).FromString(message.SerializeToString())
    assert from_pb(received) == value


@given(strategies.plans)
def test_an_apply_gets_all_of_a_plan_but_its_diffs(plan: model.Plan) -> None:
    message = plan_pb2.Plan(**plans.plan_fields(plan))
    assert plans.work_from_pb(message) == replace(plan, resource_diffs=(), label_mapping_diffs=())
    assert plan_pb2.Plan(**plans.plan_fields(plan)).SerializeToString() == message.SerializeToString()
    assert [diff.key.name for diff in message.resource_diffs] == [diff.key.name for diff in plan.resource_diffs]
    assert [diff.label.name for diff in message.label_mapping_diffs] == [
        diff.label.name for diff in plan.label_mapping_diffs
    ]


@given(strategies.remote_ids, strategies.targets, strategies.words, strategies.inventories)
def test_a_stack_record_is_read_from_its_message(
    stack_id: str, target: model.Target, name: str, inventory: tuple[model.InventoryEntry, ...]
) -> None:
    message = stack_pb2.Stack(
        id=stack_id,
        target=objects.target_to_pb(target),
        name=name,
        generation=7,
        sources=["a.yml"],
        resources=map(objects.entry_fields, inventory),
    )

    assert objects.stack_from_pb(message) == model.StackRecord(stack_id, target, name, 7, inventory, ("a.yml",))


def test_empty_parts_of_a_target_mean_the_default_ones() -> None:
    assert objects.target_from_pb(object_pb2.Target()) == model.Target("embedded", "default")


@pytest.mark.parametrize(
    ("core", "wire", "prefix"),
    [
        (model.Origin, object_pb2.Origin, "ORIGIN"),
        (model.Verb, plan_pb2.Verb, "VERB"),
        (model.Undo, plan_pb2.Undo, "UNDO"),
        (model.DiffStatus, plan_pb2.DiffStatus, "DIFF_STATUS"),
        (model.Identity, driver_pb2.Identity, "IDENTITY"),
        (model.NameUniqueness, driver_pb2.NameUniqueness, "NAME_UNIQUENESS"),
    ],
)
def test_enums_have_the_same_members_here_and_on_the_wire(core: Any, wire: Any, prefix: str) -> None:
    assert {f"{prefix}_{member.name}" for member in core} | {f"{prefix}_UNSPECIFIED"} == set(wire.keys())


@pytest.mark.parametrize(
    "from_pb",
    [
        lambda: objects.entry_from_pb(object_pb2.InventoryEntry()),
        lambda: plans.step_from_pb(plan_pb2.Step()),
        lambda: drivers.platform_from_pb(driver_pb2.DescribeResponse(kinds=[driver_pb2.KindTraits()])),
        lambda: objects.entry_from_pb(object_pb2.InventoryEntry(origin=99)),  # type: ignore[arg-type]
    ],
)
def test_an_enum_that_was_not_set_or_is_unknown_is_refused(from_pb: Callable[[], Any]) -> None:
    with pytest.raises(RequestInvalid):
        from_pb()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", "{}", '{"name": 1}', '{"name": "a"} x', "\ud800"])
def test_a_text_that_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        objects.spec_from_json(text, "new_spec_json")

    assert raised.value.metadata["field"] == "new_spec_json"


def test_a_spec_is_read_into_its_canonical_form() -> None:
    assert objects.spec_from_json(' {"b": 1.0, "name": "x", "a": [1]} ').text == '{"a":[1],"b":1.0,"name":"x"}'


OLD, NEW = spec_of({"name": "old"}), spec_of({"name": "new"})
LABEL = model.Key(model.LABEL, "l")
REFERENCE = object_pb2.Reference(pointer="/p", kind="Bucket", id="3")


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        (
            model.Verb.CREATE,
            driver_pb2.Mutation(
                create=driver_pb2.CreateResource(
                    kind="Task", spec_json='{"name":"new"}', idempotency_key="k-1", references=[REFERENCE]
                )
            ),
        ),
        (
            model.Verb.UPDATE,
            driver_pb2.Mutation(
                update=driver_pb2.UpdateResource(
                    kind="Task", id="1", spec_json='{"name":"new"}', references=[REFERENCE]
                )
            ),
        ),
        (model.Verb.DELETE, driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind="Task", id="1"))),
        (model.Verb.ATTACH, driver_pb2.Mutation(attach=driver_pb2.AttachLabel(kind="Task", id="1", label_id="2"))),
        (model.Verb.DETACH, driver_pb2.Mutation(detach=driver_pb2.DetachLabel(kind="Task", id="1", label_id="2"))),
    ],
)
def test_a_step_becomes_the_mutation_of_its_verb(verb: model.Verb, expected: driver_pb2.Mutation) -> None:
    step = model.Step(0, 0, verb, model.Key("Task", "t"), "ignored", LABEL, "ignored", OLD, NEW)

    references = [model.Reference("/p", "Bucket", "3")]
    assert drivers.mutation_to_pb(step, "1", "2", "k-1", references) == expected
