"""Values of the core and their messages: a value is unchanged after both conversions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from pkger.applier.v1 import applier_pb2
from pkger.driver.v1 import driver_pb2
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2

from services.core import model
from services.core.errors import RequestInvalid
from services.engine import operation, outcome, step_state
from services.engine.decisions import BlockedStep, StepDecision
from services.engine.effects import AnyEffect, effect_of
from services.engine.effects.effect import Sending
from services.kinds.format.canonical import spec_of
from services.rpc.convert import drivers, objects, operations, plans
from tests import strategies
from tests.rpc import messages


def an_object(item: model.Object) -> object_pb2.Object:
    """An object as part of a package."""
    return object_pb2.Package(objects=[objects.object_fields(item)]).objects[0]


def an_entry(entry: model.InventoryEntry) -> object_pb2.InventoryEntry:
    """An entry as part of an inventory."""
    return plan_pb2.PlanRecord(entries=[objects.entry_fields(entry)]).entries[0]


def a_step(step: model.Step) -> plan_pb2.Step:
    """A step as part of a plan."""
    return plan_pb2.PlanSteps(steps=[plans.step_fields(step)]).steps[0]


def a_body(plan: model.Plan) -> journal_pb2.PlanBody:
    """The body of a plan, as the applier needs it beside the header."""
    return journal_pb2.PlanBody(
        remarks=plans.remarks_to_pb(plan.remarks),
        steps=plan_pb2.PlanSteps(steps=map(plans.step_fields, plan.steps)),
        record=plans.record_changes_to_pb(plan.record),
    )


def a_step_record(record: step_state.StepRecord) -> journal_pb2.StepRecord:
    """A step record as part of a request to the journal."""
    return journal_pb2.JournalWrite(steps=[operations.step_record_fields(record)]).steps[0]


step_records = st.builds(
    step_state.StepRecord,
    st.integers(0, 10_000),
    st.sampled_from(step_state.StepState),
    st.just("") | strategies.resource_ids,
    st.just("") | strategies.words,
    st.none() | st.sampled_from(outcome.RejectionReason),
    st.lists(strategies.resource_ids, max_size=3).map(tuple),
    st.just("") | strategies.specs.map(lambda spec: spec.text),
)

ROUND_TRIPS: list[tuple[st.SearchStrategy[Any], Callable[[Any], Message], Callable[[Any], Any]]] = [
    (strategies.targets, objects.target_to_pb, objects.target_from_pb),
    (strategies.keys, objects.key_to_pb, objects.key_from_pb),
    (strategies.objects, an_object, objects.object_from_pb),
    (strategies.packages, messages.package_to_pb, objects.package_from_pb),
    (strategies.violations, objects.violation_to_pb, objects.violation_from_pb),
    (strategies.credentials, objects.credential_to_pb, objects.credential_from_pb),
    (strategies.resources, messages.resource_to_pb, objects.resource_from_pb),
    (strategies.entries, an_entry, objects.entry_from_pb),
    (strategies.platform_traits, drivers.platform_to_pb, drivers.platform_from_pb),
    (step_records, a_step_record, operations.step_record_from_pb),
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


@pytest.mark.parametrize("change", strategies.STEPS)
@given(data=st.data())
def test_a_step_survives_the_wire(change: str, data: st.DataObject) -> None:
    step = data.draw(strategies.STEPS[change])
    message = plan_pb2.Step.FromString(a_step(step).SerializeToString())
    assert message.WhichOneof("change") == change
    received = plans.step_from_pb(message)
    assert received == step
    assert names_of(received) == names_of(step)
    bare = step._replace(old_spec=None, new_spec=None, references=(), old_references=())
    assert plans.bare_step_from_pb(message) == bare


def names_of(step: model.Step) -> list[str | None]:
    """The display names of a step, which a comparison of specs ignores."""
    return [spec.display_name if spec else None for spec in (step.old_spec, step.new_spec)]


def test_every_change_of_a_step_is_tested() -> None:
    assert [field.name for field in plan_pb2.Step.DESCRIPTOR.oneofs_by_name["change"].fields] == [*strategies.STEPS]


def test_a_step_that_changes_nothing_is_refused() -> None:
    with pytest.raises(RequestInvalid) as raised:
        plans.step_from_pb(plan_pb2.Step(undo=plan_pb2.UNDO_EXACT))
    assert raised.value.metadata["field"] == "step"


@given(strategies.plans)
def test_the_applier_receives_what_it_needs_of_a_plan(plan: model.Plan) -> None:
    header, body = plans.header_to_pb(plan, "plan-1"), a_body(plan)
    without = replace(
        plan,
        remarks=replace(plan.remarks, conflicts=()),
        # The store reads these from NewPlan.
        baselines_digest="",
        creates_nameless_stack=False,
    )
    assert plans.work_from_pb(header, body) == without
    assert a_body(plan).SerializeToString() == body.SerializeToString()
    assert [each.resource_id for each in body.remarks.conflicts] == [
        each.resource_id for each in plan.remarks.conflicts
    ]


@given(strategies.plans)
def test_a_header_counts_the_steps(plan: model.Plan) -> None:
    header = plans.header_to_pb(plan, "plan-1")
    counts = header.counts
    assert header.id == "plan-1"
    sorts = (counts.creates, counts.updates, counts.deletes, counts.attaches, counts.detaches, counts.secrets)
    assert sum(sorts) == len(plan.steps)
    assert counts.secrets == sum(step.key.kind == model.SECRET for step in plan.steps)


@given(strategies.resource_diffs)
def test_a_diff_is_translated(diff: model.ResourceDiff) -> None:
    [message] = plan_pb2.PlanDiffs(resources=[plans.diff_fields(diff)]).resources
    assert (message.old_spec_json, message.new_spec_json) == (
        plans.text_of(diff.old_spec),
        plans.text_of(diff.new_spec),
    )
    assert message.HasField("location") == (diff.location is not None)
    if diff.location:
        place = (message.location.source, message.location.line, message.location.column)
        assert place == (diff.location.source, diff.location.line, diff.location.column)
    assert (message.key.name, message.resource_id, message.old_kind) == (diff.key.name, diff.resource_id, diff.old_kind)
    assert [change.path for change in message.changes] == [change.path for change in diff.changes]
    assert (message.create_step if message.HasField("create_step") else None) == diff.create_step


@given(strategies.label_mapping_diffs)
def test_the_diff_of_an_association_is_translated(diff: model.LabelMappingDiff) -> None:
    [message] = plan_pb2.PlanDiffs(label_mappings=[plans.mapping_fields(diff)]).label_mappings
    assert plan_pb2.DiffStatus.Name(message.status) == f"DIFF_STATUS_{diff.status.name}"
    assert (message.resource.name, message.resource_id) == (diff.resource.name, diff.resource_id)
    assert (message.label.name, message.label_id) == (diff.label.name, diff.label_id)


@given(strategies.resource_ids, strategies.targets, strategies.words, strategies.inventories)
def test_a_stack_record_is_read_from_its_message(
    stack_id: str, target: model.Target, name: str, inventory: tuple[model.InventoryEntry, ...]
) -> None:
    message = stack_pb2.Stack(
        id=stack_id,
        target=objects.target_to_pb(target),
        name=name,
        generation=7,
        sources=["a.yml"],
    )
    resources = plan_pb2.PlanRecord(entries=map(objects.entry_fields, inventory)).entries

    assert objects.stack_from_pb(message) == model.StackRecord(stack_id, target, name, 7, (), ("a.yml",))
    assert objects.stack_from_pb(message, resources) == model.StackRecord(
        stack_id, target, name, 7, inventory, ("a.yml",)
    )


def test_empty_fields_of_a_target_mean_the_defaults() -> None:
    assert objects.target_from_pb(object_pb2.Target()) == model.Target("embedded", "default")


@pytest.mark.parametrize(
    ("core", "wire", "prefix"),
    [
        (model.Origin, object_pb2.Origin, "ORIGIN"),
        (model.Undo, plan_pb2.Undo, "UNDO"),
        (model.DiffStatus, plan_pb2.DiffStatus, "DIFF_STATUS"),
        (model.Identity, driver_pb2.Identity, "IDENTITY"),
        (model.NameUniqueness, driver_pb2.NameUniqueness, "NAME_UNIQUENESS"),
        (model.OperationKind, plan_pb2.OperationKind, "OPERATION_KIND"),
        (operation.OperationState, operation_pb2.OperationState, "OPERATION_STATE"),
        (operation.Direction, operation_pb2.Direction, "DIRECTION"),
        (operation.BlockedReason, operation_pb2.BlockedReason, "BLOCKED_REASON"),
        (operation.Decision, operation_pb2.Decision, "DECISION"),
        (outcome.RejectionReason, operation_pb2.RejectionReason, "REJECTION_REASON"),
        (step_state.StepState, journal_pb2.StepState, "STEP_STATE"),
    ],
)
def test_core_enums_have_the_members_of_their_proto_enums(core: Any, wire: Any, prefix: str) -> None:
    assert {f"{prefix}_{member.name}" for member in core} | {f"{prefix}_UNSPECIFIED"} == set(wire.keys())


@pytest.mark.parametrize(
    "from_pb",
    [
        lambda: objects.entry_from_pb(object_pb2.InventoryEntry()),
        lambda: plans.work_from_pb(plan_pb2.Plan(), journal_pb2.PlanBody()),
        lambda: drivers.platform_from_pb(driver_pb2.DescribeResponse(kinds=[driver_pb2.KindTraits()])),
        lambda: operations.step_record_from_pb(journal_pb2.StepRecord()),
        lambda: objects.entry_from_pb(object_pb2.InventoryEntry(origin=99)),  # type: ignore[arg-type]
    ],
)
def test_an_unset_or_unknown_enum_is_refused(from_pb: Callable[[], Any]) -> None:
    with pytest.raises(RequestInvalid):
        from_pb()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "1", "{}", '{"name": 1}', '{"name": "a"} x', "\ud800"])
def test_an_invalid_spec_is_refused(text: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        objects.spec_from_json(text, "new_spec_json")

    assert raised.value.metadata["field"] == "new_spec_json"


def test_a_spec_is_parsed_to_its_canonical_form() -> None:
    assert objects.spec_from_json(' {"b": 1.0, "name": "x", "a": [1]} ').text == '{"a":[1],"b":1.0,"name":"x"}'


UNREAD = "{this is no JSON"


@pytest.mark.parametrize(
    "specs",
    [
        lambda: [objects.resource_from_pb(object_pb2.Resource(spec_json=UNREAD, display_name="a")).spec],
        lambda: [objects.object_from_pb(object_pb2.Object(spec_json=UNREAD, display_name="a")).spec],
        lambda: specs_of(plan_pb2.Step(create=plan_pb2.CreateStep(spec_json=UNREAD, display_name="a"))),
        lambda: specs_of(
            plan_pb2.Step(
                update=plan_pb2.UpdateStep(
                    spec_json=UNREAD, display_name="a", old_spec_json=UNREAD, old_display_name="a"
                )
            )
        ),
        lambda: specs_of(plan_pb2.Step(delete=plan_pb2.DeleteStep(old_spec_json=UNREAD, old_display_name="a"))),
    ],
)
def test_a_checked_spec_is_not_parsed(specs: Callable[[], list[model.Spec]]) -> None:
    """A large plan passes through the services without parsing specs that are not used."""
    found = specs()
    assert found
    for spec in found:
        assert (spec.text, spec.display_name) == (UNREAD, "a")
        with pytest.raises(model.UnreadableSpecError):
            _ = spec.value


def specs_of(message: plan_pb2.Step) -> list[model.Spec]:
    step = plans.step_from_pb(message)
    return [spec for spec in (step.old_spec, step.new_spec) if spec]


def test_a_spec_without_a_display_name_is_parsed() -> None:
    assert objects.trusted_spec('{"name": "a"}', "").display_name == "a"
    for text, name in ((UNREAD, ""), ("", "a"), ("[]", "a")):
        with pytest.raises(RequestInvalid):
            objects.trusted_spec(text, name)


def test_an_unchecked_spec_is_parsed_even_with_a_display_name() -> None:
    message = object_pb2.Object(spec_json='{"name": "a"}', display_name="b")
    assert objects.object_from_pb(message, is_checked=False).spec.display_name == "a"
    with pytest.raises(RequestInvalid):
        objects.package_from_pb(object_pb2.Package(objects=[object_pb2.Object(spec_json=UNREAD, display_name="a")]))


OLD, NEW = spec_of({"name": "old"}), spec_of({"name": "new"})
LABEL = model.Key(model.LABEL, "l")
REFERENCE = object_pb2.Reference(pointer="/p", kind="Bucket", id="3")


A_TASK, A_SECRET = model.Key("Task", "t"), model.Key(model.SECRET, "k")

MUTATIONS: list[tuple[model.Verb, model.Key, driver_pb2.Mutation]] = [
    (
        model.Verb.CREATE,
        A_TASK,
        driver_pb2.Mutation(
            create=driver_pb2.CreateResource(
                kind="Task", spec_json='{"name":"new"}', idempotency_key="k-1", references=[REFERENCE]
            )
        ),
    ),
    (
        model.Verb.UPDATE,
        A_TASK,
        driver_pb2.Mutation(
            update=driver_pb2.UpdateResource(kind="Task", id="1", spec_json='{"name":"new"}', references=[REFERENCE])
        ),
    ),
    (model.Verb.DELETE, A_TASK, driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind="Task", id="1"))),
    (model.Verb.ATTACH, A_TASK, driver_pb2.Mutation(attach=driver_pb2.AttachLabel(kind="Task", id="1", label_id="2"))),
    (model.Verb.DETACH, A_TASK, driver_pb2.Mutation(detach=driver_pb2.DetachLabel(kind="Task", id="1", label_id="2"))),
    (model.Verb.CREATE, A_SECRET, driver_pb2.Mutation(put_secret=driver_pb2.PutSecret(key="1", value="v"))),
    (model.Verb.UPDATE, A_SECRET, driver_pb2.Mutation(put_secret=driver_pb2.PutSecret(key="1", value="v"))),
    (model.Verb.DELETE, A_SECRET, driver_pb2.Mutation(delete_secret=driver_pb2.DeleteSecret(key="1"))),
]


def an_effect(verb: model.Verb, key: model.Key) -> AnyEffect:
    return effect_of(model.Step(0, 0, verb, key, "ignored", LABEL, "ignored", OLD, NEW))


@pytest.mark.parametrize(("verb", "key", "expected"), MUTATIONS)
def test_a_step_becomes_the_mutation_of_its_verb(
    verb: model.Verb, key: model.Key, expected: driver_pb2.Mutation
) -> None:
    sending = Sending("1", "2", (model.Reference("/p", "Bucket", "3"),))
    assert drivers.mutation_to_pb(an_effect(verb, key), sending, "k-1", "v") == expected


def test_every_effect_has_a_mutation_and_every_mutation_an_effect() -> None:
    assert {type(an_effect(verb, key)) for verb, key, _ in MUTATIONS} == set(get_args(AnyEffect))
    changes = driver_pb2.Mutation.DESCRIPTOR.oneofs_by_name["change"].fields
    assert {expected.WhichOneof("change") for *_, expected in MUTATIONS} == {field.name for field in changes}


@pytest.mark.parametrize(
    ("verb", "result", "expected"),
    [
        (model.Verb.UPDATE, {"done": {}}, outcome.Done("1")),
        (model.Verb.UPDATE, {"done": {"observed_spec_json": '{"name":"a"}'}}, outcome.Done("1", '{"name":"a"}')),
        (model.Verb.CREATE, {"done": {"id": "9"}}, outcome.Done("9")),
        (
            model.Verb.CREATE,
            {"done": {"id": "9", "observed_spec_json": '{"name":"a"}'}},
            outcome.Done("9", '{"name":"a"}'),
        ),
        (
            model.Verb.CREATE,
            {"done": {"id": "9", "observed_spec_json": '{"name":"a"}', "replayed": True}},
            outcome.Done("9"),
        ),
        (model.Verb.CREATE, {"done": {}}, outcome.Unknown("the driver returned no id of the created resource")),
        (
            model.Verb.UPDATE,
            {"rejected": {"reason": operation_pb2.REJECTION_REASON_NAME_TAKEN, "message": "no"}},
            outcome.Failed("no", outcome.RejectionReason.NAME_TAKEN),
        ),
        (model.Verb.UPDATE, {"rejected": {"message": "no"}}, outcome.Failed("no")),
        (model.Verb.UPDATE, {"rejected": {"reason": 99, "message": "no"}}, outcome.Failed("no")),
        (
            model.Verb.UPDATE,
            {"rejected": {"message": "later", "retry_after": {"seconds": 1, "nanos": 500_000_000}}},
            outcome.Failed("later", retry_after=1.5),
        ),
        (
            model.Verb.UPDATE,
            {"ambiguous": {"message": "?", "retry_after": {"seconds": 2}}},
            outcome.Unknown("?", retry_after=2.0),
        ),
        (model.Verb.UPDATE, {}, outcome.Unknown("the driver returned no result")),
    ],
)
def test_the_result_of_a_driver_is_the_outcome_of_the_step(
    verb: model.Verb, result: Any, expected: outcome.Outcome
) -> None:
    message = driver_pb2.MutationResult(**result)
    assert drivers.outcome_from_pb(an_effect(verb, A_TASK), Sending("1"), message) == expected


BLOCKED = {
    model.Verb.CREATE: model.Step(3, 1, model.Verb.CREATE, A_TASK, new_spec=NEW, reason="new"),
    model.Verb.UPDATE: model.Step(3, 1, model.Verb.UPDATE, A_TASK, "1", old_spec=OLD, new_spec=NEW, reason="changed"),
    model.Verb.DELETE: model.Step(3, 1, model.Verb.DELETE, A_TASK, "1", old_spec=OLD, undo=model.Undo.RECREATE),
    model.Verb.ATTACH: model.Step(3, 1, model.Verb.ATTACH, A_TASK, "1", LABEL, "2"),
    model.Verb.DETACH: model.Step(3, 1, model.Verb.DETACH, A_TASK, "1", LABEL, "2"),
}


@pytest.mark.parametrize("direction", operation.Direction)
@pytest.mark.parametrize("verb", model.Verb)
@pytest.mark.parametrize("found_resource_id", ["", "9"])
def test_a_blocked_step_offers_the_same_decisions_after_it_was_stored(
    direction: operation.Direction, verb: model.Verb, found_resource_id: str
) -> None:
    step = BLOCKED[verb]
    blocked = BlockedStep(step, direction, operation.BlockedReason.CONFLICT, "theirs", found_resource_id)
    message = operations.blocked_step_to_pb(blocked)
    assert [operation_pb2.Decision.Name(each) for each in message.decisions] == [
        f"DECISION_{decision}" for decision in blocked.decisions
    ]
    assert OLD.text not in str(message)
    stored = operations.blocked_step_from_pb(operation_pb2.BlockedStep.FromString(message.SerializeToString()))
    assert stored == blocked._replace(step=step._replace(old_spec=None, new_spec=None))
    assert stored.decisions == blocked.decisions


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (operation_pb2.DECISION_ADOPT, operation.Decision.ADOPT),
        (operation_pb2.DECISION_UNSPECIFIED, None),
        (99, None),
    ],
)
def test_an_unknown_decision_is_none(number: Any, expected: operation.Decision | None) -> None:
    message = applier_pb2.StepDecision(step=3, decision=number, resource_id="9")
    assert operations.decision_from_pb(message) == StepDecision(3, expected, "9")


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (outcome.Done("9"), {"done": {"resource_id": "9"}}),
        (outcome.Failed("no"), {"failed": {"message": "no"}}),
        (
            outcome.Failed("no", outcome.RejectionReason.NOT_FOUND, 1.0),
            {"failed": {"message": "no", "reason": operation_pb2.REJECTION_REASON_NOT_FOUND}},
        ),
        (outcome.Unknown("?", is_conflict=True, resource_id="9"), {"unknown": {"message": "?"}}),
        (outcome.Skipped("stopped"), {"skipped": {"message": "stopped"}}),
        (outcome.GivenUp("so be it"), {"skipped": {"message": "so be it"}}),
    ],
)
def test_an_event_has_the_outcome_of_a_step(ended: outcome.Outcome, expected: Any) -> None:
    assert operations.outcome_to_pb(7, ended) == operation_pb2.StepOutcome(step=7, **expected)


def test_outcomes_of_undos_are_in_reverse_order() -> None:
    ended: outcome.Outcomes = {2: outcome.Done("b"), 1: outcome.Done("a")}
    [done] = operations.outcomes_to_pb(ended, operation.Direction.DO)
    [undone] = operations.outcomes_to_pb(ended, operation.Direction.UNDO)
    assert (type(done), [each.step for each in done.outcomes]) == (operation_pb2.StepsEnded, [1, 2])
    assert (type(undone), [each.step for each in undone.outcomes]) == (operation_pb2.StepsUndone, [2, 1])


@pytest.mark.parametrize(
    ("observed", "known"),
    [("", ""), ("{nope", ""), ("[]", ""), ('{"a":1}', ""), ('{ "name": "b", "a": 1 }', '{"a":1,"name":"b"}')],
)
def test_the_observed_spec_of_a_driver_is_checked(observed: str, known: str) -> None:
    create = effect_of(model.Step(0, 0, model.Verb.CREATE, A_TASK, new_spec=NEW))
    result = driver_pb2.MutationResult(done=driver_pb2.Done(id="1", observed_spec_json=observed))
    assert drivers.outcome_from_pb(create, Sending(), result) == outcome.Done("1", known)


def test_a_message_of_a_driver_becomes_one_printable_line() -> None:
    create = effect_of(model.Step(0, 0, model.Verb.CREATE, A_TASK, new_spec=NEW))
    result = driver_pb2.MutationResult(rejected=driver_pb2.Rejected(message="a\0b\x1b[31m\n" + "x" * 5000))
    failed = drivers.outcome_from_pb(create, Sending(), result)
    assert isinstance(failed, outcome.Failed)
    assert failed.message.startswith("a b [31m x")
    assert len(failed.message) == drivers.LONGEST_MESSAGE
