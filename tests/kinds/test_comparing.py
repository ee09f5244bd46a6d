"""
Specs with the same meaning (docs/reference/package-format.md, "Buckets", docs/reference/package-format.md, "Equal
sources").
"""

from typing import Any

import pytest

from services.core.model import DataLoss, FieldChange, Spec, UnreadableSpecError
from services.kinds.comparing import comparable, differences, loss_of
from services.kinds.format.canonical import spec_of


@pytest.mark.parametrize("schema_type", [{}, {"schemaType": ""}, {"schemaType": "implicit"}])
def test_a_bucket_without_a_schema_type_has_the_implicit_one(schema_type: dict[str, Any]) -> None:
    assert comparable("Bucket", spec_of({"name": "b", **schema_type})).value == {"name": "b", "schemaType": ""}


@pytest.mark.parametrize("word", ["explicit", "Implicit", "implicit "])
def test_any_other_word_has_another_meaning(word: str) -> None:
    spec = spec_of({"name": "b", "schemaType": word})
    assert comparable("Bucket", spec) is spec


def test_the_default_word_has_no_meaning_in_other_kinds_or_fields() -> None:
    for kind in ("Task", "Spaceship"):
        spec = spec_of({"name": "implicit", "schemaType": "implicit"})
        assert comparable(kind, spec) is spec


def test_a_spec_is_compared_and_not_changed() -> None:
    spec = spec_of({"name": "v", "schemaType": "implicit", "selected": ["b", "a"], "deep": {"list": [2, 1]}})
    paths = ("/selected", "/deep/list", "/not/there", "/name/of/no/list")
    assert comparable("Bucket", spec, paths).value == {
        "name": "v",
        "schemaType": "",
        "selected": ["a", "b"],
        "deep": {"list": [1, 2]},
    }
    assert spec.value["selected"] == ["b", "a"]


def paths(old: dict[str, Any], new: dict[str, Any], *set_paths: str) -> list[str]:
    return [change.path for change in differences("Bucket", spec_of(old), "Bucket", spec_of(new), set_paths)]


def test_differences_have_a_path_an_old_and_a_new_value() -> None:
    old, new = spec_of({"name": "b", "gone": 1, "same": [1]}), spec_of({"name": "b", "came": None, "same": [1]})
    assert differences("Bucket", old, "Bucket", new) == (
        FieldChange("/came", "", "null"),
        FieldChange("/gone", "1", ""),
    )


@pytest.mark.parametrize(
    ("old", "new", "set_paths", "expected"),
    [
        ({"name": "b"}, {"name": "b"}, [], []),
        ({"name": "b", "schemaType": "implicit"}, {"name": "b"}, [], []),
        ({"name": "b", "schemaType": "implicit"}, {"name": "b", "schemaType": "explicit"}, [], ["/schemaType"]),
        ({"name": "b", "tags": [1, 2]}, {"name": "b", "tags": [2, 1]}, ["/tags"], []),
        ({"name": "b", "tags": [1, 2]}, {"name": "b", "tags": [2, 1]}, [], ["/tags/0", "/tags/1"]),
        ({"name": "b", "n": 1}, {"name": "b", "n": 1.0}, [], ["/n"]),
    ],
)
def test_specs_with_the_same_meaning_do_not_differ(
    old: dict[str, Any], new: dict[str, Any], set_paths: list[str], expected: list[str]
) -> None:
    assert paths(old, new, *set_paths) == paths(new, old, *set_paths) == expected


def test_each_spec_is_compared_as_one_of_its_own_kind() -> None:
    """The default word has no meaning in other kinds, so a resource of another kind differs by it."""
    bucket, other = spec_of({"name": "b", "schemaType": "implicit"}), spec_of({"name": "b", "schemaType": "implicit"})
    assert [each.path for each in differences("Bucket", bucket, "Task", other)] == ["/schemaType"]
    assert differences("Bucket", bucket, "Bucket", other) == ()


def test_specs_with_equal_texts_are_not_read_and_others_are() -> None:
    """Most resources of a package are converged already; comparing them needs no JSON parsing."""
    unread, same = Spec("no JSON", "b"), Spec("no JSON", "b")
    assert differences("Bucket", unread, "Bucket", same, ["/tags"]) == ()
    for kind, other in (("Bucket", spec_of({"name": "b"})), ("Task", same)):
        with pytest.raises(UnreadableSpecError):
            differences("Bucket", unread, kind, other)


HOUR = {"everySeconds": 3600, "type": "expire"}


@pytest.mark.parametrize(
    ("old", "new", "data"),
    [
        ([], [HOUR], "data older than 1h"),
        ([{**HOUR, "everySeconds": 0}], [HOUR], "data older than 1h"),
        ([{**HOUR, "everySeconds": 7201}], [HOUR], "data older than 1h"),
        ([], [{**HOUR, "everySeconds": 90_061}], "data older than 1d1h1m1s"),
        ("not a list", [HOUR], "data older than 1h"),
        ([HOUR], [HOUR], ""),
        ([HOUR], [{**HOUR, "everySeconds": 3601}], ""),
        ([HOUR], [], ""),
        ([], [], ""),
    ],
)
def test_a_bucket_loses_data_by_a_shorter_retention(old: Any, new: list[dict[str, Any]], data: str) -> None:
    before, after = (spec_of({"name": "b", "retentionRules": rules}) for rules in (old, new))
    assert loss_of("Bucket", before, after) == (DataLoss("/retentionRules", data) if data else None)


def test_other_kinds_and_unknown_ones_lose_no_data() -> None:
    before, after = (spec_of({"name": "b", "retentionRules": rules}) for rules in ([], [HOUR]))
    assert loss_of("Task", before, after) is loss_of("Spaceship", before, after) is None
