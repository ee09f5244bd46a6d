"""Rules for the rows of the registry."""

import ast
from pathlib import Path

import pytest

from services.kinds.format.kind import Kind
from services.kinds.registry import ACCEPTED, KINDS, REFERABLE_FAMILIES
from tests.conftest import ROOT

KNOWING = ("services/gen", "services/drivers", "services/kinds/influxdb", "services/kinds/diagnostics.py")
"""Code that may name kinds: the kinds, the drivers, and the examples of the diagnostics."""


def code() -> list[Path]:
    """The code that must work for any kind."""
    found = (path for folder in (ROOT / "services", *ROOT.glob("*_svc")) for path in folder.rglob("*.py"))
    return [path for path in found if not path.relative_to(ROOT).as_posix().startswith(KNOWING)]


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_kinds_of_a_family_agree(kind: Kind) -> None:
    for other in KINDS.values():
        if other.family == kind.family:
            assert other.family_kind == kind.family_kind
            assert other.summary_key == kind.summary_key
            assert other.listed_by_kind == kind.listed_by_kind


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_that_others_refer_to_refers_to_none(kind: Kind) -> None:
    """The planner follows references one step far."""
    assert not (kind.uses and kind.family in REFERABLE_FAMILIES)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_references_of_kinds_name_existing_fields_and_families(kind: Kind) -> None:
    assert kind.uses.keys() <= kind.fields.fields.keys()
    assert set(kind.uses.values()) <= {other.family for other in KINDS.values()}


def test_kinds_with_fields_for_secrets_hold_credentials() -> None:
    """``pkger validate`` shows no line of their objects."""
    holding = {name for name, kind in KINDS.items() if kind.holds_credentials}
    assert holding == {name for name, kind in KINDS.items() if kind.family == "endpoint"}


def test_no_other_code_names_a_kind_but_labels() -> None:
    """A new kind is one file and one row (docs/kinds.md); that labels are attached to objects is a rule of the core."""
    assert len(code()) > 100
    named = {
        (path.relative_to(ROOT).as_posix(), node.value)
        for path in code()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in ACCEPTED
    }
    # The driver's method is called Check.
    assert named - {("services/rpc/channel.py", "Check")} == {("services/core/model.py", "Label")}
