"""Specs: compared by their text, and parsed only when their value is used."""

from collections.abc import Mapping
from typing import Any

import pytest

from services.core import model
from services.core.diff import changes
from services.core.model import Spec, UnreadableSpecError

UNREAD = "no JSON"


def test_specs_are_compared_hashed_and_shown_unread() -> None:
    one, same, other = Spec(UNREAD, "a"), Spec(UNREAD, "a"), Spec(UNREAD + "!", "a")
    assert one == same
    assert one != other
    assert one != UNREAD
    assert {one, same, other} == {one, other}
    assert repr(one) == "Spec(no JSON)"
    assert one.display_name == "a"
    assert changes(one, same) == ()


def test_numbers_and_booleans_that_python_holds_equal_make_different_specs() -> None:
    texts = ['{"name":"a","n":1}', '{"name":"a","n":1.0}', '{"name":"a","n":true}']
    assert len({Spec(text, "a") for text in texts}) == 3


def test_a_spec_is_parsed_once_when_its_value_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = model.read_object

    def counting(text: str) -> Mapping[str, Any]:
        read.append(text)
        return original(text)

    monkeypatch.setattr(model, "read_object", counting)
    spec = Spec('{"name":"a","deep":{"er":1}}', "a")
    assert (spec.display_name, read) == ("a", [])
    assert spec.value == {"name": "a", "deep": {"er": 1}}
    assert [spec.at(pointer) for pointer in ("/deep/er", "/deep/er/no", "/no")] == [1, None, None]
    assert read == [spec.text]


def test_a_spec_made_with_its_value_is_never_parsed() -> None:
    value = {"name": "a"}
    assert Spec(UNREAD, "a", value).value is value


DEEP = '{"name":"a","deep":' + "[" * model.DEEPEST_SPEC + "]" * model.DEEPEST_SPEC + "}"
DEEPER_THAN_PYTHON = "[" * 100_000

ODD = ["", UNREAD, "[]", "null", "1", '"name"', '{"name":"a"} x', '{"a":NaN}', '{"a":-Infinity}', r'{"a":"\ud800"}']


@pytest.mark.parametrize("text", [*ODD, DEEP, DEEPER_THAN_PYTHON])
def test_a_text_that_is_no_object_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(UnreadableSpecError):
        _ = Spec(text, "a").value
