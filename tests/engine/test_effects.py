"""The traits of each effect, its inverse, and its changes of ids."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, get_args

import pytest
from hypothesis import given

from services.core.model import (
    LABEL,
    SECRET,
    Adoption,
    Identity,
    InventoryEntry,
    Key,
    KindTraits,
    NameUniqueness,
    Origin,
    PlatformTraits,
    Step,
    StepReference,
    Undo,
    Verb,
)
from services.engine.claims import (
    Claim,
    Claimed,
    ClaimedAssociation,
    ClaimedName,
    ClaimedResource,
    ClaimedSecret,
    ClaimMode,
    adopted_claims,
)
from services.engine.effects import (
    AnyEffect,
    Attach,
    Create,
    Delete,
    DeleteSecret,
    Detach,
    PutSecret,
    Update,
    effect_of,
    inverse_of,
)
from services.engine.effects.effect import Sending
from services.engine.ids import ResourceIds
from services.engine.outcome import Done, Failed, NoEffect, Skipped, Unknown
from services.kinds.format.canonical import spec_of
from tests.engine.plans import a_plan
from tests.strategies import resource_steps

EFFECTS: tuple[type[AnyEffect], ...] = get_args(AnyEffect)

TASK, RED, PAGER, TOKEN = (
    Key("Task", "roll"),
    Key(LABEL, "red"),
    Key("NotificationEndpointSlack", "p"),
    Key(SECRET, "k"),
)
OLD, NEW = spec_of({"name": "roll", "every": "1h"}), spec_of({"name": "roll", "every": "2h"})


class Row(NamedTuple):
    """
    The traits of an effect.

    Attributes:
        step: A step with the effect.
        inverse: The effect that undoes it.
        true: The flags that are true; all others are false.
        target: The resource it is sent to, where the task is t1.
        gone: The outcome where its resource does not exist; None: unknown.
        leaves: The content after the effect, and the content without it.
    """

    step: Step
    inverse: type[AnyEffect]
    true: str
    target: str
    gone: object
    leaves: tuple[object, object]


FLAGS = (
    "makes",
    "removes",
    "links",
    "is_of_secret",
    "seals",
    "is_repeatable",
    "is_resolved_by_retry",
    "is_searched_for",
)

ROWS: dict[type[AnyEffect], Row] = {
    Create: Row(
        Step(0, 0, Verb.CREATE, TASK, new_spec=NEW),
        Delete,
        "makes is_searched_for",
        "",
        NoEffect(),
        (NEW, None),
    ),
    Update: Row(
        Step(0, 0, Verb.UPDATE, TASK, "t1", old_spec=OLD, new_spec=NEW),
        Update,
        "is_repeatable",
        "t1",
        NoEffect(),
        (NEW, OLD),
    ),
    Delete: Row(
        Step(0, 0, Verb.DELETE, TASK, "t1", old_spec=OLD, undo=Undo.NONE),
        Create,
        "removes seals is_repeatable",
        "t1",
        Done("t1"),
        (None, OLD),
    ),
    Attach: Row(
        Step(0, 0, Verb.ATTACH, TASK, "t1", label=RED, label_id="l1"),
        Detach,
        "links is_repeatable",
        "t1",
        NoEffect(),
        (None, None),
    ),
    Detach: Row(
        Step(0, 0, Verb.DETACH, TASK, "t1", label=RED, label_id="l1"),
        Attach,
        "removes links is_repeatable",
        "t1",
        Done("t1"),
        (None, None),
    ),
    PutSecret: Row(
        Step(0, 0, Verb.UPDATE, TOKEN, "k", undo=Undo.NONE),
        DeleteSecret,
        "is_of_secret is_resolved_by_retry is_repeatable",
        "k",
        None,
        (None, None),
    ),
    DeleteSecret: Row(
        Step(0, 0, Verb.DELETE, TOKEN),
        PutSecret,
        "removes is_of_secret is_resolved_by_retry is_repeatable",
        "k",
        None,
        (None, None),
    ),
}
"""On a platform without idempotency keys on which names may repeat."""

TRAITS = KindTraits("Task", Identity.SEARCH, NameUniqueness.NONE, 1, Undo.RECREATE)
PLATFORM = PlatformTraits("remote", "1", {"Task": TRAITS}, 10, 1)


def ids_of(step: Step) -> ResourceIds:
    return ResourceIds(a_plan(step))


def test_every_effect_is_handled_everywhere() -> None:
    """The test names the places in which a new effect is missing; mypy names the matches on ``AnyEffect``."""
    of_resources = {verb: effect_of(Step(0, 0, verb, TASK)) for verb in Verb}
    of_secrets = [effect_of(Step(0, 0, verb, TOKEN)) for verb in (Verb.CREATE, Verb.UPDATE, Verb.DELETE)]
    made = {type(effect) for effect in (*of_resources.values(), *of_secrets)}
    assert not any(effect.is_of_secret for effect in of_resources.values())
    assert all(effect.is_of_secret for effect in of_secrets)
    missing = {
        "made by no verb": set(EFFECTS) - made,
        "made by a verb, and not in AnyEffect": made - set(EFFECTS),
        "without a row in this test": set(EFFECTS) - ROWS.keys(),
        "whose inverse is none": {each for each, row in ROWS.items() if row.inverse not in EFFECTS},
    }
    assert {where: effects for where, effects in missing.items() if effects} == {}


@pytest.mark.parametrize(("effect_class", "row"), ROWS.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_each_effect_has_the_traits_of_its_row(effect_class: type[AnyEffect], row: Row) -> None:
    effect, ids = effect_of(row.step), ids_of(row.step)
    assert type(effect) is effect_class
    assert type(inverse_of(effect)) is row.inverse
    found = {flag: getattr(effect, flag) for flag in FLAGS[:5]} | {
        flag: getattr(effect, flag)(PLATFORM) for flag in FLAGS[5:]
    }
    assert {flag for flag in FLAGS if found[flag]} == set(row.true.split())
    assert (effect.target(ids), effect.label_id(ids)) == (row.target, "l1" if effect.links else "")
    assert effect.is_possible(ids)
    assert effect.sending(ids) == Sending(row.target, effect.label_id(ids))
    assert (effect.expected(stands=True), effect.expected(stands=False)) == row.leaves
    gone = effect.finding(effect.sending(ids), None, TRAITS)
    assert (None if isinstance(gone, Unknown) else gone) == row.gone
    assert (effect.number, effect.shown) == (0, f"{row.step.verb.value} {row.step.key}")


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        (Identity.NATIVE, (True, True, False)),
        (Identity.NATURAL_KEY, (False, False, False)),
        (Identity.SEARCH, (False, False, True)),
    ],
)
def test_only_a_creation_depends_on_the_platform_in_whether_it_is_repeatable_and_searched_for(
    identity: Identity, expected: tuple[bool, bool, bool]
) -> None:
    platform = replace(PLATFORM, kinds={"Task": replace(TRAITS, identity=identity)})
    for row in ROWS.values():
        effect = effect_of(row.step)
        found = (
            effect.is_resolved_by_retry(platform),
            effect.is_repeatable(platform),
            effect.is_searched_for(platform),
        )
        assert found == (expected if isinstance(effect, Create) else (effect.is_of_secret, True, False))


@pytest.mark.parametrize(("effect_class", "row"), ROWS.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_an_effect_is_possible_only_where_all_that_it_needs_exists(effect_class: type[AnyEffect], row: Row) -> None:
    known, referring = row.step, (StepReference("/endpointName", PAGER),)
    unknown = known._replace(resource_id="")
    needs_target = not issubclass(effect_class, Create | PutSecret | DeleteSecret)
    assert effect_of(unknown).is_possible(ids_of(unknown)) != needs_target
    # A deletion needs no references, and neither associations nor secrets have any.
    if issubclass(effect_class, Create | Update):
        assert not effect_of(known._replace(references=referring)).is_possible(ids_of(known))
    if issubclass(effect_class, Attach | Detach):
        unlabelled = known._replace(label_id="")
        assert not effect_of(unlabelled).is_possible(ids_of(unlabelled))


@pytest.mark.parametrize(("effect_class", "row"), ROWS.items(), ids=lambda each: getattr(each, "__name__", ""))
def test_only_creations_and_deletions_change_the_resource_of_a_key(effect_class: type[AnyEffect], row: Row) -> None:
    ids = ids_of(row.step)
    before = ids.all_resources()
    effect_of(row.step).learn(ids, "t9")
    if effect_class is Create:
        assert ids.all_resources() == before | {("Task", "t9")}
    elif effect_class is Delete:
        assert ids.all_resources() == before - {("Task", "t1")}
    else:
        assert ids.all_resources() == before


@given(resource_steps)
def test_the_inverse_of_the_inverse_is_the_step_itself(step: Step) -> None:
    inverse = effect_of(step).inverse()
    assert effect_of(inverse).inverse() == step
    assert inverse.number == step.number


@given(resource_steps)
def test_a_step_is_undone_exactly_when_it_is_reversible_and_took_effect(step: Step) -> None:
    effect = effect_of(step)
    assert effect.is_to_be_undone(Done("1")) == (step.undo is not Undo.NONE)
    assert not effect.is_to_be_undone(Failed("no"))
    assert not effect.is_to_be_undone(Skipped("no"))
    assert not effect.is_to_be_undone(Unknown("?"))


NAMED = replace(TRAITS, name_uniqueness=NameUniqueness.CASE_INSENSITIVE, name_scope="work")
CALLED, RENAMED = spec_of({"name": "Roll"}), spec_of({"name": "Turn"})
RESOURCE, ROLL, TURN = ClaimedResource("Task", "t1"), ClaimedName("work", "roll"), ClaimedName("work", "turn")


@pytest.mark.parametrize(
    ("step", "claims"),
    [
        (Step(0, 0, Verb.CREATE, TASK, new_spec=CALLED), [ROLL]),
        (Step(0, 0, Verb.UPDATE, TASK, "t1", old_spec=CALLED, new_spec=CALLED), [RESOURCE]),
        (Step(0, 0, Verb.UPDATE, TASK, "t1", old_spec=CALLED, new_spec=RENAMED), [RESOURCE, ROLL, TURN]),
        (Step(0, 0, Verb.DELETE, TASK, "t1", old_spec=CALLED), [RESOURCE, ROLL]),
        (ROWS[Attach].step, [ClaimedAssociation("Task", "t1", "l1")]),
        (ROWS[Detach].step, [ClaimedAssociation("Task", "t1", "l1")]),
        (ROWS[Detach].step._replace(key=Key("Task", "")), [ClaimedAssociation("Task", "t1", "l1"), RESOURCE]),
        (ROWS[Attach].step._replace(resource_id=""), []),
        (ROWS[PutSecret].step, [ClaimedSecret("k")]),
        (ROWS[DeleteSecret].step, [ClaimedSecret("k")]),
    ],
    ids=lambda each: each.verb.value if isinstance(each, Step) else "",
)
def test_claims_cover_the_step_and_its_inverse(step: Step, claims: Sequence[Claimed]) -> None:
    platform = replace(PLATFORM, kinds={"Task": NAMED})
    effect, ids = effect_of(step), ids_of(step)
    assert effect.claims(ids, platform) == claims
    if not effect.makes:
        assert {*inverse_of(effect).claims(ids, platform)} <= {*claims}
    assert effect.awaits_claims(platform) == effect.is_of_secret


def test_a_detachment_removes_the_association_and_leaves_the_resource() -> None:
    """The owner of a resource that other stacks use may let it go, and delete the label on it."""
    effect = effect_of(ROWS[Detach].step._replace(key=Key("Task", "")))
    claims = effect.claims(ids_of(effect.step), PLATFORM)
    assert [effect.claim_mode(each) for each in claims] == [ClaimMode.REMOVE, ClaimMode.ALONE]


def test_a_repeatable_name_is_claimed_where_only_it_identifies_the_created_resource() -> None:
    step = Step(0, 0, Verb.CREATE, TASK, new_spec=CALLED)
    searched, ids = effect_of(step), ids_of(step)
    assert searched.claims(ids, PLATFORM) == [ClaimedName("Task", "Roll")]
    assert searched.awaits_claims(PLATFORM)
    with_keys = replace(PLATFORM, kinds={"Task": replace(TRAITS, identity=Identity.NATIVE)})
    assert searched.claims(ids, with_keys) == []


def test_an_adopted_resource_is_claimed_by_its_id_and_by_its_unique_name() -> None:
    adoptions = [Adoption(TASK, "Task", "t1", "Roll")]
    claims = adopted_claims(adoptions, replace(PLATFORM, kinds={"Task": NAMED}))
    assert claims == [Claim(0, TASK, RESOURCE), Claim(0, TASK, ROLL)]
    assert adopted_claims(adoptions, PLATFORM) == [Claim(0, TASK, RESOURCE)]


CPU, MEM = Key("Dashboard", "cpu"), Key("Dashboard", "mem")


def test_ids_come_from_the_plan_until_steps_change_them() -> None:
    create = Step(0, 0, Verb.CREATE, CPU, new_spec=spec_of({"name": "cpu"}))
    delete = Step(0, 0, Verb.DELETE, MEM, "mem-1", old_spec=spec_of({"name": "mem"}), undo=Undo.RECREATE)
    attach = Step(0, 0, Verb.ATTACH, CPU, label=RED)
    unowned = Step(0, 0, Verb.DETACH, Key("Dashboard", ""), "other", label=Key(LABEL, ""), label_id="theirs")
    entries = [InventoryEntry(CPU, "", Origin.CREATED), InventoryEntry(RED, "red-1", Origin.CREATED)]
    plan = a_plan(create, delete, attach, unowned, entries=entries)
    ids, effects = ResourceIds(plan), [effect_of(step) for step in plan.steps]
    assert [effect.target(ids) for effect in effects] == ["", "mem-1", "", "other"]
    assert [effect.label_id(ids) for effect in effects] == ["", "", "red-1", "theirs"]
    effects[0].learn(ids, "cpu-1")
    effects[1].learn(ids, "mem-1")
    assert [effect.target(ids) for effect in effects] == ["", "", "cpu-1", "other"]
    assert inverse_of(effects[0]).target(ids) == "cpu-1"
