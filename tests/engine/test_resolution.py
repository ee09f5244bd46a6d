"""The outcome of a step without a response: the table of docs/reference/engine.md, "Recovery"."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.model import (
    LABEL,
    Identity,
    Key,
    KindTraits,
    NameUniqueness,
    Reference,
    Resource,
    Spec,
    Step,
    Undo,
    Verb,
)
from services.engine.effects import AnyEffect, Create, Update, effect_of, inverse_of
from services.engine.effects.effect import Sending
from services.engine.outcome import Done, Finding, NoEffect, Unknown
from services.kinds.format.canonical import spec_of

KEY = Key("Task", "roll")
OLD, NEW, OTHER = (spec_of({"name": "roll", "every": every}) for every in ("1h", "2h", "3h"))
TO = (Reference("/endpointName", "Endpoint", "e1"),)
TRAITS = KindTraits("Task", Identity.SEARCH, NameUniqueness.NONE, 1, Undo.RECREATE)
NAMED = replace(TRAITS, identity=Identity.NATURAL_KEY, name_uniqueness=NameUniqueness.CASE_INSENSITIVE)


def live(id_: str = "t1", spec: Spec = OLD, labels: Sequence[str] = (), to: tuple[Reference, ...] = ()) -> Resource:
    return Resource("Task", id_, spec, tuple(labels), to)


@dataclass(frozen=True)
class Unanswered:
    """A mutation without a response."""

    effect: AnyEffect
    sending: Sending


def unanswered(
    verb: Verb, label_id: str = "", old: Spec = OLD, new: Spec = NEW, to: tuple[Reference, ...] = ()
) -> Unanswered:
    step = Step(0, 0, verb, KEY, old_spec=old, new_spec=new, label=Key(LABEL, "red"))
    return Unanswered(effect_of(step), Sending("t1", label_id, to))


def back(sent: Unanswered) -> Unanswered:
    return replace(sent, effect=inverse_of(sent.effect))


UPDATE, DELETE = unanswered(Verb.UPDATE), unanswered(Verb.DELETE)
ATTACH, DETACH = unanswered(Verb.ATTACH, label_id="l1"), unanswered(Verb.DETACH, label_id="l1")
REWIRED = unanswered(Verb.UPDATE, old=NEW, to=TO)
BACK = back(UPDATE)
SAME = unanswered(Verb.UPDATE, new=OLD)


@pytest.mark.parametrize(
    ("sent", "there", "expected"),
    [
        pytest.param(UPDATE, live(spec=NEW), Done("t1"), id="an update that took effect"),
        pytest.param(UPDATE, live(spec=OLD), NoEffect(), id="an update without effect"),
        pytest.param(UPDATE, None, NoEffect(), id="an update of a resource that is gone"),
        pytest.param(UPDATE, live(spec=OTHER), None, id="an update, and one of another writer"),
        pytest.param(UPDATE, live(spec=NEW, to=TO), None, id="an update, and a reference of another writer"),
        pytest.param(SAME, live(spec=OLD), Done("t1"), id="an update that changes nothing"),
        pytest.param(REWIRED, live(spec=NEW, to=TO), Done("t1"), id="a reference that took effect"),
        pytest.param(REWIRED, live(spec=NEW), NoEffect(), id="a reference without effect"),
        pytest.param(BACK, live(spec=OLD), Done("t1"), id="an update that was undone"),
        pytest.param(BACK, live(spec=NEW), NoEffect(), id="an update that was not undone"),
        pytest.param(BACK, live(spec=OTHER), None, id="an update undone over one of another writer"),
        pytest.param(DELETE, None, Done("t1"), id="a deletion of a resource that is gone"),
        pytest.param(DELETE, live(spec=OTHER), NoEffect(), id="a deletion of a resource that exists"),
        pytest.param(ATTACH, live(labels=["l0", "l1"]), Done("t1"), id="a label that is attached"),
        pytest.param(ATTACH, live(labels=["l0"]), NoEffect(), id="a label that is not"),
        pytest.param(ATTACH, None, NoEffect(), id="a label on a resource that is gone"),
        pytest.param(DETACH, live(labels=["l0"]), Done("t1"), id="a label that is detached"),
        pytest.param(DETACH, live(labels=["l1"]), NoEffect(), id="a label that stays"),
        pytest.param(DETACH, None, Done("t1"), id="a label of a resource that is gone"),
    ],
)
def test_the_outcome_of_a_change_is_found_by_its_resource(
    sent: Unanswered, there: Resource | None, expected: Finding | None
) -> None:
    """None stands for a conflict."""
    found = sent.effect.finding(sent.sending, there, TRAITS)
    if expected is None:
        assert isinstance(found, Unknown)
        assert (found.is_conflict, found.resource_id) == (True, "t1")
    else:
        assert found == expected


TRIMMED = replace(NAMED, name_uniqueness=NameUniqueness.TRIMMED_CASE_INSENSITIVE)
PADDED = spec_of({"name": " Roll\t", "every": "2h"})
SHOUTED = spec_of({"name": "ROLL", "every": "2h"})
ELSE = live("t9", spec_of({"name": "else", "every": "2h"}))
CREATE, CREATE_AFTER = Sending(), Sending(before_ids=("t1",))


@pytest.mark.parametrize(
    ("traits", "sent", "there", "owned", "expected"),
    [
        pytest.param(TRAITS, CREATE, [ELSE], (), NoEffect(), id="nothing found"),
        pytest.param(TRAITS, CREATE, [ELSE, live(spec=NEW)], (), Done("t1"), id="one found"),
        pytest.param(
            TRAITS,
            CREATE,
            [live(spec=OLD)],
            (),
            Unknown("", is_conflict=True, resource_id="t1"),
            id="one of other content",
        ),
        pytest.param(
            TRAITS,
            CREATE,
            [live(spec=NEW, to=TO)],
            (),
            Unknown("", is_conflict=True, resource_id="t1"),
            id="one that refers elsewhere",
        ),
        pytest.param(TRAITS, CREATE, [live(spec=NEW)], ("t1",), NoEffect(), id="one that a stack owns"),
        pytest.param(TRAITS, CREATE_AFTER, [live(spec=NEW)], (), NoEffect(), id="one that was there before"),
        pytest.param(
            TRAITS, CREATE_AFTER, [live(spec=NEW), live("t2", NEW)], (), Done("t2"), id="one beside one from before"
        ),
        pytest.param(TRAITS, CREATE, [live(spec=NEW), live("t2", NEW)], (), Unknown(""), id="more than one"),
        pytest.param(NAMED, CREATE, [ELSE], (), NoEffect(), id="the name is free"),
        pytest.param(NAMED, CREATE, [ELSE, live(spec=NEW)], (), Done("t1"), id="the name is ours"),
        pytest.param(NAMED, CREATE, [live(spec=OLD)], (), Unknown("", True, "t1"), id="the name is taken"),
        pytest.param(NAMED, CREATE, [live(spec=SHOUTED)], (), Unknown("", True, "t1"), id="the name but for case"),
        pytest.param(NAMED, CREATE, [live(spec=NEW)], ("t1",), Unknown("", True), id="the name is another stack's"),
        pytest.param(NAMED, CREATE, [live(spec=PADDED)], (), NoEffect(), id="the name with white space counts"),
        pytest.param(TRIMMED, CREATE, [live(spec=PADDED)], (), Unknown("", True, "t1"), id="the name but for space"),
        pytest.param(NAMED, CREATE, [live(spec=NEW), live("t2", NEW)], (), Unknown(""), id="the name is not unique"),
    ],
)
def test_the_outcome_of_a_creation_is_found_by_its_name(
    traits: KindTraits, sent: Sending, there: Sequence[Resource], owned: Sequence[str], expected: Finding
) -> None:
    found = Create(Step(0, 0, Verb.CREATE, KEY, new_spec=NEW)).finding_among(sent, there, owned, traits)
    match found, expected:
        case Unknown(message), Unknown():
            assert message
            assert replace(found, message="") == expected
        case _:
            assert found == expected


def test_the_order_of_a_list_that_is_a_set_does_not_count() -> None:
    written, read = (spec_of({"name": "roll", "tags": tags}) for tags in (["a", "b"], ["b", "a"]))
    effect = Update(Step(0, 0, Verb.UPDATE, KEY, old_spec=OLD, new_spec=written))
    there = live(spec=read)
    assert effect.finding(Sending("t1"), there, replace(TRAITS, set_paths=("/tags",))) == Done("t1")
    assert isinstance(effect.finding(Sending("t1"), there, TRAITS), Unknown)


@given(
    st.sampled_from([UPDATE, ATTACH, DETACH]),
    st.builds(live, spec=st.sampled_from([OLD, NEW]), labels=st.sampled_from([(), ("l1",)])),
)
def test_without_another_writer_a_step_took_effect_exactly_when_its_inverse_did_not(
    sent: Unanswered, there: Resource
) -> None:
    found = [each.effect.finding(each.sending, there, TRAITS) for each in (sent, back(sent))]
    assert {isinstance(each, Done) for each in found} == {True, False}
