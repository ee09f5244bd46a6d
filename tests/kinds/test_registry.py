"""What the rows of the registry have to agree on."""

import pytest

from services.kinds.format.kind import Kind
from services.kinds.registry import KINDS, REFERABLE_FAMILIES


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_kinds_of_a_family_agree(kind: Kind) -> None:
    for other in KINDS.values():
        if other.family == kind.family:
            assert other.family_kind == kind.family_kind
            assert other.summary_key == kind.summary_key
            assert other.listed_by_kind == kind.listed_by_kind


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_what_others_refer_to_refers_to_nothing(kind: Kind) -> None:
    """The planner follows references one step far."""
    assert not (kind.uses and kind.family in REFERABLE_FAMILIES)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_what_refers_to_others_names_fields_and_families_that_exist(kind: Kind) -> None:
    assert kind.uses.keys() <= kind.fields.fields.keys()
    assert set(kind.uses.values()) <= {other.family for other in KINDS.values()}


def test_kinds_with_fields_for_secrets_hold_credentials() -> None:
    """``pkger validate`` shows no line of their objects."""
    holding = {name for name, kind in KINDS.items() if kind.holds_credentials}
    assert holding == {name for name, kind in KINDS.items() if kind.family == "endpoint"}
