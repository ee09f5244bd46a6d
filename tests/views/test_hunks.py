"""The differences of specs and texts, as users read them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.diff import changes
from services.core.model import Spec
from services.views.cutting import cut
from services.views.fields import fields_of
from services.views.hunks import Change, Hunk, hunks_of
from services.views.lines import KEPT, LEFT_OUT, REMOVED, line_diff

_LINES = st.lists(st.text("ab ", max_size=2), max_size=12).map("\n".join)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab\n", max_size=4),
    lambda items: (
        st.lists(items, max_size=3) | st.dictionaries(st.sampled_from(["name", "a", "b/~"]), items, max_size=3)
    ),
    max_leaves=12,
)


def hunks(old: Any, new: Any) -> tuple[Hunk, ...]:
    before, after = (json.dumps(side, sort_keys=True, ensure_ascii=False, separators=(",", ":")) for side in (old, new))
    found = changes(Spec(before, ""), Spec(after, ""))
    return hunks_of([Change(each.path, each.old, each.new) for each in found], before, after)


def charts(*names: str, **changed: Any) -> dict[str, Any]:
    return {"charts": [{"name": name, "note": changed.get(name, "")} for name in names]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (charts("a", "b"), charts("a", "new", "b"), [Hunk("charts[new]", "", '{"name":"new","note":""}')]),
        (charts("a", "b"), charts("b"), [Hunk("charts[a]", '{"name":"a","note":""}')]),
        (charts("a", "b"), charts("c", "b", b="x"), [
            Hunk("charts[a]", '{"name":"a","note":""}'),
            Hunk("charts[c]", "", '{"name":"c","note":""}'),
            Hunk("charts[b].note", '""', '"x"'),
        ]),
        (charts("a", "b"), charts("b", "a"), [Hunk("charts", '["a","b"]', '["b","a"]', moved=True)]),
        (charts("a", "a"), charts("a"), [Hunk("charts[a #2]", '{"name":"a","note":""}')]),
        ({"values": ["x", "y"]}, {"values": ["x", "new", "y"]}, [Hunk("values[1]", "", '"new"')]),
        ({"values": [{"n": 1}]}, {"values": [{"n": 2}]}, [Hunk("values[0].n", "1", "2")]),
        ({"a": 1}, {"a": True}, [Hunk("a", "1", "true")]),
        ({"a": 1}, {}, [Hunk("a", "1", "")]),
        ({"a": {"b/c": 1}}, {"a": {"b/c": 2}}, [Hunk("a.b/c", "1", "2")]),
    ],
)  # fmt: skip
def test_a_difference_has_its_own_path(old: Any, new: Any, expected: list[Hunk]) -> None:
    assert list(hunks(old, new)) == expected


def test_texts_of_several_lines_differ_by_lines() -> None:
    old = "".join(f"line {number}\n" for number in range(20))
    (hunk,) = hunks({"query": old}, {"query": old.replace("line 10\n", "")})
    assert [(line.sign, line.text) for line in hunk.lines] == [
        (LEFT_OUT, "8"),
        *((KEPT, f"line {number}") for number in (7, 8, 9)),
        (REMOVED, "line 10"),
        *((KEPT, f"line {number}") for number in (11, 12, 13)),
    ]


@given(_VALUES, _VALUES)
def test_there_are_hunks_exactly_where_specs_differ(old: Any, new: Any) -> None:
    before, after = {"x": old}, {"x": new}
    found = hunks(before, after)
    assert bool(found) == (json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True))
    assert all(hunk.old != hunk.new for hunk in found)


@given(_LINES, _LINES)
def test_a_line_diff_holds_both_texts(old: str, new: str) -> None:
    lines = line_diff(old, new, context=100)
    assert bool(lines) == (old != new)
    if lines:
        assert "\n".join(line.text for line in lines if line.sign in " -") == old
        assert "\n".join(line.text for line in lines if line.sign in " +") == new


def test_long_texts_that_differ_everywhere_differ_as_a_whole() -> None:
    old, new = ("\n".join(f"{word} {number}" for number in range(5000)) for word in ("old", "new"))
    lines = line_diff(f"same\n{old}", f"same\n{new}")
    assert len([line for line in lines if line.sign == REMOVED]) == 5001


@given(st.text("ab", max_size=30), st.text("ab", max_size=30), st.integers(3, 20))
def test_two_sides_that_differ_never_look_equal(old: str, new: str, width: int) -> None:
    shown = cut((old, new), width)
    assert (shown[0] != shown[1]) == (old != new)
    assert all(len(side) <= width for side in shown)


def test_fields_are_folded_and_unfolded() -> None:
    spec = json.dumps({
        "name": "n", "description": "", "query": "a\nb\n", "charts": [{"name": "cpu", "x": 1}, {"name": "mem", "x": 2}],
        "values": list(range(40)), "fixed": False,
    })  # fmt: skip
    folded = {field.path: field.value for field in fields_of(spec, 20)}
    assert folded == {"charts": "2 items: cpu, mem", "fixed": "false", "query": "2 lines", "values": "40 items"}
    full = {field.path: (field.value, field.lines) for field in fields_of(spec, 20, full=True)}
    assert full["query"] == ("2 lines", ("a", "b", ""))
    assert full["charts[1].x"] == ("2", ())
