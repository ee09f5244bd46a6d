"""Names of exported objects: readable, unique, and independent of the other exported objects."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_svc.export.naming import Recorded, names_of
from services.core.model import Resource, ResourceKey
from services.kinds.format.canonical import spec_of
from services.kinds.format.names import is_meta_name
from services.kinds.generated_names import generated_name
from services.kinds.registry import KINDS


def a_resource(kind: str, id_: str, name: str) -> Resource:
    return Resource(kind, id_, spec_of({"name": name}))


def named(
    *resources: Resource,
    own: Mapping[ResourceKey, str] | None = None,
    recorded: Mapping[ResourceKey, Sequence[Recorded]] | None = None,
) -> list[str]:
    names = names_of(resources, own or {}, recorded or {})
    return [names[each.kind, each.id] for each in resources]


@pytest.mark.parametrize(
    ("display_name", "words"),
    [
        ("CPU usage (%)", "cpu-usage"),
        ("Übergröße & Söhne", "ubergrosse-sohne"),
        ("  ", "bucket"),
        ("数据桶", "bucket"),
        ("数据 v2", "v2"),
        ("a_b-c", "a-b-c"),
        ("x" * 100, "x" * 54),
        ("word " * 20, "-".join(["word"] * 11)),
        ("--", "bucket"),
    ],
)
def test_a_name_has_the_words_of_the_display_name(display_name: str, words: str) -> None:
    name = generated_name(a_resource("Bucket", "1", display_name))
    assert name.rpartition("-")[0] == words
    assert is_meta_name(name)


@given(st.text(max_size=80), st.sampled_from(sorted(KINDS)), st.booleans())
def test_any_display_name_makes_a_name(display_name: str, kind: str, is_long: bool) -> None:
    assert is_meta_name(generated_name(a_resource(kind, "1", display_name), is_long))


def test_equal_display_names_make_different_names() -> None:
    resources = [a_resource("Task", f"{number:016x}", "same") for number in range(10_000)]
    assert len(set(named(*resources))) == len(resources)


def test_a_name_follows_from_kind_and_id() -> None:
    one, other = a_resource("Task", "1", "a"), a_resource("Dashboard", "1", "a")
    assert named(one, other) == [*named(one), *named(other)]
    assert len({*named(one, other), *named(a_resource("Task", "2", "a"))}) == 3


A, B, C = (a_resource("CheckThreshold", id_, "c") for id_ in "123")
D = a_resource("CheckDeadman", "1", "d")


def test_names_of_the_exported_stack_come_first() -> None:
    recorded = {("CheckThreshold", "1"): [Recorded(0, 1, "s", "theirs")]}
    assert named(A, own={("CheckThreshold", "1"): "ours"}, recorded=recorded) == ["ours"]


def test_names_of_other_stacks_come_before_generated_ones() -> None:
    recorded = {("CheckThreshold", "1"): [Recorded(1, 1, "t", "used"), Recorded(0, 2, "s", "owned")]}
    assert named(A, recorded=recorded) == ["owned"]


def test_a_name_that_several_resources_of_a_family_have_belongs_to_the_one_that_was_recorded_first() -> None:
    recorded = {
        ("CheckThreshold", "1"): [Recorded(0, 2, "s", "same"), Recorded(1, 3, "u", "other")],
        ("CheckDeadman", "1"): [Recorded(0, 1, "t", "same")],
        ("CheckThreshold", "2"): [Recorded(0, 3, "s", "same")],
    }
    assert named(A, B, D, recorded=recorded) == ["other", generated_name(B), "same"]
    assert named(D, B, A, recorded=recorded) == ["same", generated_name(B), "other"]


def test_a_name_of_the_exported_stack_takes_it_from_others() -> None:
    recorded = {("CheckThreshold", "1"): [Recorded(0, 1, "t", "same")]}
    assert named(A, B, own={("CheckThreshold", "2"): "same"}, recorded=recorded) == [generated_name(A), "same"]


@pytest.mark.parametrize("name", ["Not A Name", "a~1", "", "x" * 64])
def test_a_recorded_name_that_is_invalid_in_a_package_is_not_used(name: str) -> None:
    assert named(A, own={("CheckThreshold", "1"): name}) == [generated_name(A)]


def test_a_generated_name_that_is_taken_gets_a_longer_suffix() -> None:
    taken = generated_name(A)
    first, second = named(A, B, own={("CheckThreshold", "2"): taken})
    assert second == taken
    assert first.startswith(taken)
    assert is_meta_name(first)
