"""When two specs mean the same (packages.md 4.2, service.md 2.3.3)."""

from typing import Any

import pytest

from services.kinds.canonical import spec_of
from services.kinds.comparing import comparable


@pytest.mark.parametrize("schema_type", [{}, {"schemaType": ""}, {"schemaType": "implicit"}])
def test_a_bucket_without_a_schema_type_has_the_implicit_one(schema_type: dict[str, Any]) -> None:
    assert comparable("Bucket", spec_of({"name": "b", **schema_type})).value == {"name": "b", "schemaType": ""}


@pytest.mark.parametrize("word", ["explicit", "Implicit", "implicit "])
def test_any_other_word_is_another_one(word: str) -> None:
    spec = spec_of({"name": "b", "schemaType": word})
    assert comparable("Bucket", spec) is spec


def test_the_word_means_nothing_to_other_kinds_or_in_other_fields() -> None:
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
