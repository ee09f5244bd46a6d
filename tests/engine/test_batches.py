"""Rounds and batches: how the steps of a stage are sent."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.core.model import LABEL, Key, Step, Verb
from services.engine.batches import batches, rounds
from services.engine.effects import AnyEffect, Create, effect_of
from services.kinds.format.canonical import spec_of

few_specs = st.sampled_from([spec_of({"name": name}) for name in ("one", "two", "three")])
few_keys = st.sampled_from([Key(LABEL, "red"), Key("Bucket", "raw"), Key("Dashboard", "cpu"), Key("Dashboard", "mem")])
effect_lists = st.lists(st.tuples(st.sampled_from(Verb), few_keys, st.none() | few_specs), max_size=12).map(
    lambda found: [
        effect_of(Step(number, 0, verb, key, new_spec=spec)) for number, (verb, key, spec) in enumerate(found)
    ]
)


@given(effect_lists)
def test_rounds_hold_every_step_once_and_in_order(found: list[AnyEffect]) -> None:
    split = rounds(found)
    assert sorted(effect.number for turn in split for effect in turn) == [effect.number for effect in found]
    for turn in split:
        assert turn
        assert [effect.number for effect in turn] == sorted(effect.number for effect in turn)


@given(effect_lists)
def test_no_two_creates_of_one_name_share_a_round(found: list[AnyEffect]) -> None:
    for turn in rounds(found):
        names = [
            (effect.step.key.kind, effect.step.new_spec.display_name)
            for effect in turn
            if isinstance(effect, Create) and effect.step.new_spec is not None
        ]
        assert len(names) == len(set(names))


@given(effect_lists)
def test_all_else_runs_in_the_first_round(found: list[AnyEffect]) -> None:
    assert all(isinstance(effect, Create) for turn in rounds(found)[1:] for effect in turn)


@given(effect_lists, st.integers(1, 5), st.integers(1, 60))
def test_batches_keep_the_order_and_both_bounds(found: list[AnyEffect], max_count: int, max_bytes: int) -> None:
    cut = batches(found, max_count, max_bytes)
    assert [effect for batch in cut for effect in batch] == found
    for batch in cut:
        assert 1 <= len(batch) <= max_count
        length = sum(len(effect.step.new_spec.text.encode()) for effect in batch if effect.step.new_spec)
        assert length <= max_bytes or len(batch) == 1


@given(effect_lists, st.integers(1, 5), st.integers(1, 60))
def test_a_batch_ends_only_when_the_next_step_does_not_fit(found: list[AnyEffect], count: int, size: int) -> None:
    cut = batches(found, count, size)
    for batch, following in pairwise(cut):
        assert len(batches([*batch, following[0]], count, size)) == 2
