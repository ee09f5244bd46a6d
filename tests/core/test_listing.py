"""Lists in texts: the first parts, and the number of the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.text_lists import and_more, fitting, listed


@pytest.mark.parametrize(
    ("parts", "separator", "noun", "text"),
    [
        ([], ", ", "", ""),
        (["a"], ", ", "", "a"),
        (["a", "b"], ", ", "", "a, b"),
        (["a", "b", "c"], ", ", "", "a, b and 1 more"),
        (["a", "b", "c", "d"], "; ", "fields", "a; b; and 2 more fields"),
        (["x"] * 1236, "\n", "", "x\nx\nand 1,234 more"),
    ],
)
def test_two_parts_are_shown_and_the_others_counted(parts: list[str], separator: str, noun: str, text: str) -> None:
    assert listed(parts, 2, separator, noun) == text


@pytest.mark.parametrize("left", [0, -3])
def test_the_number_of_others_is_omitted_when_there_are_none(left: int) -> None:
    assert and_more(left) == ""


@given(st.lists(st.text(max_size=20)), st.integers(0, 60))
def test_the_longest_prefix_within_the_bound_is_shown(parts: list[str], most: int) -> None:
    shown = fitting(parts, most)
    assert shown == parts[: len(shown)]
    assert len(shown) >= min(len(parts), 1)
    assert len(shown) <= 1 or len(ascii("; ".join(shown))) <= most
    assert len(shown) == len(parts) or len(ascii("; ".join(parts[: len(shown) + 1]))) > most
