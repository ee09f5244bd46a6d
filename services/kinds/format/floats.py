"""Numbers written as text, as Go reads them."""

import math
import re

_DIGITS = "[0-9](?:_?[0-9])*"
_HEX_DIGITS = "[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL = rf"[-+]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][-+]?{_DIGITS})?"
_HEX = rf"[-+]?0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][-+]?{_DIGITS}"
_SPECIAL = r"[-+]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN]"

FLOAT_PATTERN = rf"^(?:{_DECIMAL}|{_HEX}|{_SPECIAL})$"
"""Regular expression, as JSON Schema wants it, of the texts that are floats."""

_read_as_decimal = re.compile(f"{_DECIMAL}|{_SPECIAL}").fullmatch
_read_as_hex = re.compile(_HEX).fullmatch


def parse_float(text: str) -> float | None:
    """
    The float of 64 bits nearest to the number *text*; None when it is no number, or one too large.

    Python's ``float`` is not enough: it refuses ``0x1p-2``, and accepts surrounding spaces, digits of other scripts and
    ``+nan``.
    """
    if _read_as_decimal(text):
        value = float(text)
        return None if math.isinf(value) and "n" not in text.lower() else value
    if _read_as_hex(text):
        try:
            return float.fromhex(text.replace("_", ""))
        except OverflowError:
            return None
    return None
