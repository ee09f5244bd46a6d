"""Which stack an apply without a stack joins (docs/http.md, "Which stack an apply without one joins")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_svc.nameless_stack import Candidate, chosen
from services.core.model import Key

KEYS = [Key("Bucket", name) for name in "abcdefgh"]
A, B, C, D, E, F, G, H = KEYS
HERE, THERE = ("file://here.yml",), ("file://there.yml",)


def a_stack(
    keys: list[Key], package: list[Key], sources: tuple[str, ...] = THERE, stack_id: str = "s", renamed: bool = False
) -> Candidate:
    """A stack with *keys*; *renamed*: no resource has the display name of its object in *package*."""
    return Candidate(stack_id, sources, len(keys), {key: not renamed for key in keys if key in package})


@pytest.mark.parametrize(
    ("package", "stack", "sources", "is_same"),
    [
        pytest.param([A, B], [A, B], THERE, True, id="equal keys"),
        pytest.param([A, B, C], [A], THERE, True, id="the package has more"),
        pytest.param([A], [A, B, C], THERE, True, id="the stack has more"),
        pytest.param([A, B], [A, C], THERE, False, id="one of two keys"),
        pytest.param([A, B], [C, D], THERE, False, id="no common key"),
        pytest.param([A, B], [C, D], HERE, False, id="the same source with no common key"),
        pytest.param([A, B], [A, C], HERE, True, id="the same source with half of the keys"),
        pytest.param([A, B], [A, C, D, E, F, G], HERE, True, id="the same source with half of the smaller one"),
        pytest.param([A, B, C], [A, D, E], HERE, False, id="the same source with a third of the keys"),
        pytest.param([], [A], HERE, False, id="an empty package"),
        pytest.param([A], [], HERE, False, id="an empty stack"),
    ],
)
def test_the_same_template(package: list[Key], stack: list[Key], sources: tuple[str, ...], is_same: bool) -> None:
    assert chosen(package, HERE, [a_stack(stack, package, sources)]) == ("s" if is_same else "")


@pytest.mark.parametrize(("sources", "is_same"), [(HERE, True), (THERE, False)])
def test_equal_keys_for_other_things_are_the_same_template_only_from_the_same_source(
    sources: tuple[str, ...], is_same: bool
) -> None:
    stack = a_stack([A, B], [A, B], sources, renamed=True)
    assert chosen([A, B], HERE, [stack]) == ("s" if is_same else "")


@pytest.mark.parametrize("name", ["string", "byte stream"])
def test_sources_without_a_name_are_not_the_same(name: str) -> None:
    assert chosen([A, B], [name], [a_stack([A, C], [A, B], (name,))]) == ""
    assert chosen([A, B], [], [a_stack([A, C], [A, B], ())]) == ""


def test_of_several_stacks_the_one_with_the_most_common_keys_is_chosen_then_the_newest() -> None:
    package = [A, B, C]
    stacks = [a_stack(keys, package, stack_id=name) for name, keys in [("n", [A]), ("m", [A, B]), ("o", [B, C])]]
    assert chosen(package, HERE, stacks) == "m"
    assert chosen(package, HERE, stacks[::-1]) == "o"


subsets = st.lists(st.sampled_from(KEYS), unique=True)


@given(subsets, st.lists(subsets, max_size=4), st.sampled_from([HERE, THERE]))
def test_a_template_joins_its_own_stack_and_no_stack_of_disjoint_ones(
    package: list[Key], others: list[list[Key]], sources: tuple[str, ...]
) -> None:
    apart = [
        a_stack([key for key in keys if key not in package], package, sources, f"s{number}")
        for number, keys in enumerate(others)
    ]
    assert chosen(package, HERE, apart) == ""
    own = a_stack(package, package, sources, "own")
    assert chosen(package, HERE, [*apart, own]) == ("own" if package else "")


@given(subsets, subsets, st.sampled_from([HERE, THERE]))
def test_the_rule_is_the_same_from_both_sides(one: list[Key], two: list[Key], sources: tuple[str, ...]) -> None:
    assert chosen(one, HERE, [a_stack(two, one, sources)]) == chosen(two, HERE, [a_stack(one, two, sources)])
