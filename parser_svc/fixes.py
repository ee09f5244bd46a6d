"""Makes fixes of violations: edits that replace a key or scalar."""

import json
import re

from services.core.model import Edit, Fix, Location, Position
from services.kinds.format.fields import Rewrite
from services.kinds.format.scalars import plain_scalar
from services.syntax.places import Written

_WORD = re.compile(r"[A-Za-z0-9_][-A-Za-z0-9_./]*")
"""A text that needs no escape in quotes, and no quotes in YAML unless YAML reads it as a number or another scalar."""


def fixes(rewrite: Rewrite, source: str, written: Written) -> tuple[Fix, ...]:
    """
    The fix of a violation; none if it is uncertain which text it would replace.

    Args:
        rewrite: The new text.
        source: Name of the source.
        written: The key or scalar that it replaces.
    """
    new = _new_text(rewrite, written)
    if not new:
        return ()
    title = "Put it in quotes" if rewrite.text is None else f"Write {rewrite.text}"
    return (Fix(title, (Edit(Location(source, *written.place), Position(*written.end), new),), is_preferred=True),)


def _new_text(rewrite: Rewrite, written: Written) -> str:
    """The text that the edit writes; empty if it is uncertain which text it would replace."""
    quote = written.raw[:1] if written.raw[:1] in ("'", '"') else ""
    if not written.raw or written.text is None or _unquoted(written.raw, quote) != written.text:
        return ""
    if rewrite.text is None:
        return "" if quote or not _WORD.fullmatch(written.raw.lstrip("+-.")) else f'"{written.raw}"'
    if not _WORD.fullmatch(rewrite.text):
        return ""
    if not quote and plain_scalar(rewrite.text) is not rewrite.text:
        quote = '"'
    return f"{quote}{rewrite.text}{quote}"


def _unquoted(raw: str, quote: str) -> str | None:
    """The scalar that *raw* denotes; None if that is uncertain."""
    match quote:
        case '"':
            try:
                return str(json.loads(raw))
            except ValueError:
                return None
        case "'":
            return raw[1:-1].replace("''", "'") if raw.endswith("'") else None
        case _:
            return raw
