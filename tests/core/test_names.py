"""When two display names count as equal on a platform (driver.proto, NameUniqueness)."""

import unicodedata

import pytest

from services.core.model import Identity, KindTraits, NameUniqueness, Undo

EXACT, CASE, TRIMMED = (
    NameUniqueness.EXACT,
    NameUniqueness.CASE_INSENSITIVE,
    NameUniqueness.TRIMMED_CASE_INSENSITIVE,
)


def traits(rule: NameUniqueness) -> KindTraits:
    return KindTraits("Label", Identity.NATIVE, rule, 0, Undo.RECREATE)


@pytest.mark.parametrize(
    ("first", "second", "rules"),
    [
        ("abc", "abc", {EXACT, CASE, TRIMMED}),
        ("abc", "ABC", {CASE, TRIMMED}),
        ("STRASSE", "straße", set()),
        ("STRAßE", "straße", {CASE, TRIMMED}),
        ("ﬁn", "fin", set()),
        ("ΟΔΟΣ", "οδοσ", {CASE, TRIMMED}),
        ("İz", "iz", {CASE, TRIMMED}),
        ("abc", " abc\t\n", {TRIMMED}),
        ("abc", "\u00a0ABC\u3000", {TRIMMED}),
        ("abc", "a bc", set()),
        ("a bc", "a  bc", set()),
        ("abc", "abc\x1c", set()),
        ("abc", "abc\u200b", set()),
        ("abc", "\ufeffabc", set()),
        ("é", "e\u0301", set()),
        ("  ", "\t", {TRIMMED}),
    ],
)
def test_names_are_equal_by_the_given_rules(first: str, second: str, rules: set[NameUniqueness]) -> None:
    equal = {
        rule for rule in (EXACT, CASE, TRIMMED) if traits(rule).unique_name(first) == traits(rule).unique_name(second)
    }
    assert equal == rules


def test_names_that_may_repeat_are_compared_exactly_and_are_not_unique() -> None:
    free = traits(NameUniqueness.NONE)
    assert free.unique_name("abc") is None
    assert free.compared_name(" Abc ") == " Abc "


@pytest.mark.slow
def test_exactly_the_white_space_of_unicode_is_stripped() -> None:
    """Go's unicode.IsSpace is the same set; Python's str.isspace has four more separators."""
    trimmed = traits(TRIMMED)
    stripped = {char for char in map(chr, range(0x110000)) if trimmed.compared_name(f"{char}a") == "a"}
    python = {char for char in map(chr, range(0x110000)) if char.isspace()}
    assert stripped == python - set("\x1c\x1d\x1e\x1f")
    assert {char for char in stripped if ord(char) > 0xFF} == {
        char for char in map(chr, range(0x100, 0x110000)) if unicodedata.category(char) in {"Zs", "Zl", "Zp"}
    }
