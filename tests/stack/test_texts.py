"""Texts from clients, changed so that every store can hold them."""

import pytest

from stack_svc.rules.sanitize import LONGEST_KEY, clean, key


@pytest.mark.parametrize(
    ("text", "cleaned"), [("", ""), ("ä\n\U0001f600", "ä\n\U0001f600"), ("a\0b\0", "a�b�"), ("\ud800x\udfff", "�x�")]
)
def test_characters_that_a_store_cannot_hold_are_replaced(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_a_long_key_is_stored_as_its_digest() -> None:
    longest = "ü" * (LONGEST_KEY // 2)
    assert key(longest) == longest
    digest = key(longest + "x")
    assert digest.startswith("sha256:")
    assert len(digest) == 71
    assert digest != key(longest + "y")
