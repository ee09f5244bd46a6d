"""The drift fields and the status of one resource: the table of classes, and the laws that follow from it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner_svc.drift.three_way import Presence, Side, fields_of, status_of
from services.core.drift import DriftClass, DriftField, DriftStatus, drift_counts
from services.kinds.format.canonical import canonical_text
from tests.corpora import FIXTURES, RECORDED, cases_in, parameters
from tests.differences import differences
from tests.lifecycle_adapter import drift

OWN_CASES = FIXTURES / "drift.yml"

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "a", "1", 1.0, 0.5]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/c", "d~e"]), inner, max_size=3)
    ),
    max_leaves=8,
)
SPECS = st.dictionaries(st.sampled_from(["name", "a", "b/c", "d~e"]), VALUES, max_size=4)
LABELS = st.frozensets(st.sampled_from(["l1", "l2", "l/3"]))
REFERENCES = st.dictionaries(st.just("/name"), st.sampled_from(['{"id":"1"}', '{"id":"2"}']), max_size=1)
SIDES = st.builds(Side, SPECS, LABELS, REFERENCES)


def classes(fields: tuple[DriftField, ...]) -> dict[str, str]:
    return {each.path: each.field_class.value for each in fields}


@pytest.mark.parametrize("path", parameters([OWN_CASES], [RECORDED / "lifecycle" / "drift.jsonl"]))
def test_the_drift_of_a_resource_is_as_expected(path: Path) -> None:
    cases = own_cases() if path == OWN_CASES else cases_in(path)
    found = []
    for case in cases:
        expected = {key: case["expect"][key] for key in ("status", "fields")}
        found += [f"{case['about']}: {text}" for text in differences(expected, drift(case["input"]))]
    assert found == []
    assert len(cases) > 30


def own_cases() -> list[dict[str, Any]]:
    """Our own cases in the form of the recorded ones."""
    cases = []
    for row in yaml.safe_load(OWN_CASES.read_text()):
        package = _named(row["package"])
        live: dict[str, Any] = {"is": row.get("is", "present")}
        if live["is"] == "present":
            live["spec"] = _named(row.get("live", package))
        case = {
            "package": package,
            "applied": _named(row.get("applied", package)),
            "live": live,
            "labels": row.get("labels", {"package": [], "applied": [], "live": []}),
            "set_paths": row.get("sets", []),
            "policy": {"ignore": row.get("ignore", [])},
            "entry": {"state": row.get("state", "PRESENT")},
        }
        fields = [{"path": path, "class": name} for path, name in row["expect"].get("fields", {}).items()]
        cases.append({"about": row["about"], "input": case, "expect": row["expect"] | {"fields": fields}})
    return cases


def _named(spec: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if spec is None else {"name": "hourly"} | spec


@pytest.mark.parametrize(
    ("package", "applied", "live", "expected"),
    [
        (2, 1, 1, "pending"),
        (1, 1, 2, "drifted"),
        (2, 1, 2, "converged"),
        (3, 1, 2, "conflict"),
        (None, 1, 1, "pending"),
        (1, 1, None, "drifted"),
        (1, 1, True, "drifted"),
        (1.0, 1, 1, "pending"),
        ([1, 2], [1, 2], [1], "drifted"),
        ({"a": 1}, [], "a", "conflict"),
    ],
)
def test_the_class_follows_from_the_three_sides(package: Any, applied: Any, live: Any, expected: str) -> None:
    fields = fields_of(Side({"a": package}), Side({"a": applied}), Side({"a": live}))
    assert classes(fields) == {"/a": expected}
    assert [(each.package, each.applied, each.live) for each in fields] == [
        tuple(map(canonical_text, (package, applied, live)))
    ]


def test_a_missing_value_is_not_null() -> None:
    [field] = fields_of(Side({"a": None}), Side({"a": None}), Side({}))
    assert field == ("/a", DriftClass.DRIFTED, "null", "null", "")


def test_objects_and_lists_are_compared_inside() -> None:
    before = {"charts": [{"name": "a", "x": 1}, {"name": "b"}], "a/b": {"c~d": 1}}
    now = {"charts": [{"name": "a", "x": 2}, {"name": "b"}], "a/b": {"c~d": 2}}
    assert classes(fields_of(Side(before), Side(before), Side(now))) == {
        "/a~1b/c~0d": "drifted",
        "/charts/0/x": "drifted",
    }


def test_a_reference_is_compared_instead_of_the_name_in_the_spec() -> None:
    package, applied, live = (
        Side({"endpointName": name}, references={"/endpointName": reference})
        for name, reference in (("mine", "1"), ("", "1"), ("theirs", "2"))
    )
    assert fields_of(package, applied, live) == (("/endpointName", DriftClass.DRIFTED, "1", "1", "2"),)


def test_labels_attached_outside_the_stack_are_no_drift() -> None:
    mine = Side({}, frozenset({"a"}))
    assert fields_of(mine, mine, Side({}, frozenset({"a", "theirs"}))) == ()
    assert classes(fields_of(mine, mine, Side({}, frozenset({"theirs"})))) == {"/associations/a": "drifted"}


def test_an_object_that_the_revision_lacks_is_one_field() -> None:
    side = Side({"name": "a", "b": 1})
    assert classes(fields_of(Side(None), side, side)) == {"": "pending"}


@pytest.mark.parametrize(
    ("rule", "is_ignored"),
    [
        ("/charts", True),
        ("/charts/0", True),
        ("/charts/0/x", True),
        ("/charts/*/x", True),
        ("/*", True),
        ("/charts/0/x/y", False),
        ("/charts/1", False),
        ("/chart", False),
        ("/charts/*/y", False),
    ],
)
def test_a_rule_takes_its_field_and_all_below_it(rule: str, is_ignored: bool) -> None:
    before, now = Side({"charts": [{"x": 1}]}), Side({"charts": [{"x": 2}]})
    fields = fields_of(before, before, now, [rule])
    assert classes(fields) == {"/charts/0/x": "ignored" if is_ignored else "drifted"}
    expected = DriftStatus.IN_SYNC if is_ignored else DriftStatus.DRIFTED
    assert status_of(Presence.THERE, fields) is expected


@pytest.mark.parametrize("rule", ["/associations", "/associations/l~11", "/associations/*"])
def test_a_rule_takes_labels(rule: str) -> None:
    mine = Side({}, frozenset({"l/1"}))
    assert classes(fields_of(mine, mine, Side({}), [rule])) == {"/associations/l~11": "ignored"}


@given(SIDES)
def test_equal_sides_have_no_fields(side: Side) -> None:
    assert fields_of(side, side, side) == ()


@given(SIDES, SIDES, SIDES)
def test_the_classes_follow_the_table(package: Side, applied: Side, live: Side) -> None:
    fields = fields_of(package, applied, live)
    assert [each.path for each in fields] == sorted({each.path for each in fields})
    for field in fields:
        equal = (field.applied == field.live, field.package == field.applied, field.package == field.live)
        assert equal != (True, True, True)
        assert (
            field.field_class
            is {
                (True, False, False): DriftClass.PENDING,
                (False, True, False): DriftClass.DRIFTED,
                (False, False, True): DriftClass.CONVERGED,
                (False, False, False): DriftClass.CONFLICT,
            }[equal]
        )


@given(SPECS, SPECS)
def test_each_difference_is_a_field(before: dict[str, Any], now: dict[str, Any]) -> None:
    fields = fields_of(Side(before), Side(before), Side(now))
    assert (fields == ()) == (canonical_text(before) == canonical_text(now))
    assert {each.field_class for each in fields} <= {DriftClass.DRIFTED}
    for field in fields:
        assert [text and json.loads(text) for text in (field.applied, field.live)] == [
            _at(side, field.path) for side in (before, now)
        ]


@given(SIDES, SIDES, SIDES)
def test_the_status_is_that_of_the_worst_field(package: Side, applied: Side, live: Side) -> None:
    fields = fields_of(package, applied, live)
    found = {each.field_class.value for each in fields}
    worst = next((each for each in ("conflict", "drifted", "pending") if each in found), "in_sync")
    assert status_of(Presence.THERE, fields).value == worst
    assert status_of(Presence.GONE, fields) is DriftStatus.MISSING
    assert status_of(Presence.UNREADABLE, fields, is_pending_delete=True) is DriftStatus.UNREADABLE
    assert status_of(Presence.THERE, fields, is_pending_delete=True) is DriftStatus.LEFTOVER
    assert status_of(Presence.GONE, fields, is_pending_delete=True) is DriftStatus.GONE


def test_statuses_are_counted() -> None:
    found = drift_counts([DriftStatus.IN_SYNC, DriftStatus.MISSING, DriftStatus.IN_SYNC])
    assert {status: count for status, count in found._asdict().items() if count} == {"in_sync": 2, "missing": 1}


def _at(value: Any, path: str) -> Any:
    """The value at a pointer; an empty text if there is none."""
    for step in path.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(key)]
        elif key in value:
            value = value[key]
        else:
            return ""
    return value
