"""Plainly valid objects are read in one pass, with the result of the full validation."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from bench.package import Mix, package_text
from services.kinds.format.canonical import canonical_text
from services.kinds.format.field_table import Table
from services.kinds.format.fields import Fields
from services.kinds.format.plain_reading import plain_reader
from services.kinds.registry import KINDS
from services.kinds.schema import plain_spec, spec_table
from services.syntax.yaml_reader import read_documents
from tests.corpora import corpus_parameters
from tests.parser.test_document_cache import answer, edited, packages_to_edit
from tests.parser.test_laws import as_yaml
from tests.parser.written import environments, mappings, packages, scalars, trees


@contextmanager
def without_plain_reading() -> Iterator[None]:
    """No spec counts as plainly valid, so each is validated in full."""
    with mock.patch("parser_svc.validation.plain_spec", return_value=lambda spec: None):
        yield


def check(text: str, env: Mapping[str, Any]) -> None:
    with without_plain_reading():
        expected = answer([text], None, env)
    assert answer([text], None, env) == expected


@given(packages, environments)
def test_objects_of_every_kind_come_to_the_same(documents: list[dict[str, Any]], env: dict[str, Any]) -> None:
    check(as_yaml(documents), env)


def check_edits(folder: Path, count: int, seed: int) -> None:
    chance = random.Random(seed)
    texts = packages_to_edit(folder)
    text = ""
    for number in range(count):
        text = edited(text if number % 5 else chance.choice(texts), chance)
        check(text, {"stage": "live"} if number % 3 == 0 else {})


@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.slow))
def test_edited_packages_come_to_the_same(folder: Path) -> None:
    check_edits(folder, 100, seed=1)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("folder", corpus_parameters())
def test_packages_come_to_the_same_after_10_000_edits(folder: Path, seed: int) -> None:
    check_edits(folder, 1000, seed)


def tables(table: Table) -> Iterator[Table]:
    """A table, and the tables of its fields."""
    yield table
    for field in table.fields.values():
        if isinstance(inner := getattr(field.shape, "table", None), Table):
            yield from tables(inner)


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
def test_plainly_valid_objects_have_neither_faults_nor_remarks(kind: str, data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(list(tables(spec_table(kind)))))
    mapping = data.draw(mappings(table))
    if data.draw(st.booleans()):
        mapping = {**mapping, data.draw(st.sampled_from([*table.fields, "unknown"])): data.draw(scalars | trees)}
    if (values := plain_reader(table)(mapping)) is None:
        event("looked at closely")
        return
    event("plainly right")
    read = table.read(mapping)
    assert canonical_text({key: values[key] for key in read}) == canonical_text(read)
    fields = Fields(mapping, "spec", ("spec",))
    assert table.faults(fields, read) == []
    assert list(table.remarks(fields)) == []


def rule(seconds: Any) -> dict[str, Any]:
    return {"retentionRules": [{"type": "expire", "everySeconds": seconds}]}


@pytest.mark.parametrize(
    ("kind", "spec", "is_plain"),
    [
        ("Bucket", rule(3600), True),
        ("Bucket", rule(3599), False),
        ("Bucket", rule(2**63 // 10**9), True),
        ("Bucket", rule(2**63 // 10**9 + 1), False),
        ("Bucket", rule(3600.0), False),
        ("Bucket", rule(True), False),
        ("Bucket", {"retentionRules": [{"everySeconds": 3600}]}, False),
        ("Bucket", {"retentionRules": [{"type": "Expire", "everySeconds": 3600}]}, False),
        ("Bucket", {"retentionRules": ["expire"]}, False),
        ("Bucket", {"description": 5}, False),
        ("Bucket", {"descriptio": "text"}, False),
        ("Bucket", {"associations": [{"kind": "Bucket", "name": "a"}]}, False),
        ("Telegraf", {"config": "x"}, True),
        ("Telegraf", {"config": ""}, False),
        ("Telegraf", {}, False),
        ("Task", {"query": " x ", "every": "1h"}, True),
        ("Task", {"query": "x", "every": "soon"}, False),
        ("Dashboard", {"charts": [{"kind": "markdown", "xPos": 2**63 - 1}]}, True),
        ("Dashboard", {"charts": [{"kind": "markdown", "xPos": 2**63}]}, False),
        ("Dashboard", {"charts": [{"kind": "Single_Stat", "width": 1, "height": 1}]}, True),
        ("Dashboard", {"charts": [{"kind": "Single_Stat", "width": 0, "height": 1}]}, False),
        ("Dashboard", {"charts": [{"kind": "none"}]}, False),
    ],
)
def test_the_limits_of_plainly_valid_specs_are_those_of_the_rules(
    kind: str, spec: dict[str, Any], is_plain: bool
) -> None:
    assert (plain_spec(kind)(spec) is not None) == is_plain


@pytest.mark.parametrize("mix", Mix)
def test_hardly_any_object_of_a_package_takes_a_closer_look(mix: Mix) -> None:
    documents = read_documents("a.yml", package_text(100, mix))
    read: Callable[[Any], Any] = lambda document: plain_spec(document["kind"])(document["spec"])  # noqa: E731
    assert all(map(read, documents))
