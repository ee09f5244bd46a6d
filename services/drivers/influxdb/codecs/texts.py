"""Texts as the server treats them."""

_WHITE_SPACE = (
    *range(0x9, 0xE),
    0x20,
    0x85,
    0xA0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
    0x3000,
)
_BLANKS = "".join(map(chr, _WHITE_SPACE))


def trimmed(text: str) -> str:
    """*text* without white space at its ends, by the definition of Unicode, as the server trims it."""
    return text.strip(_BLANKS)
