"""The consoles that commands print to: they escape control characters, and cut nothing."""

import os
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Span, Text

from services.cli.escapes import escaped
from services.cli.options import Common

_UNBOUNDED = 100_000
"""More columns than any table has: a name that is cut can be neither copied nor piped."""


class _Escaping(Console):
    """A console that escapes characters that a terminal would interpret."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print *objects*, texts, with escapes for characters that a terminal would interpret or not show."""
        super().print(*map(_shown, objects), **options)


def _shown(text: Any) -> Any:
    if isinstance(text, str):
        return escaped(text)
    if not isinstance(text, Text) or escaped(text.plain) == text.plain:
        return text
    places = {place for span in text.spans for place in (span.start, span.end)}
    shown = Text(style=text.style)
    for part in text.divide(sorted(place for place in places if 0 < place < len(text))):
        plain = escaped(part.plain)
        shown.append_text(Text(plain, part.style, spans=[Span(0, len(plain), span.style) for span in part.spans]))
    return shown


def console(*, stderr: bool = False) -> Console:
    """Standard output or error; colours only at a terminal, and no line is wrapped or cut to its width."""
    return _Escaping(highlight=False, markup=False, emoji=False, soft_wrap=True, width=_UNBOUNDED, stderr=stderr)


def progress_console() -> Console:
    """Where progress is printed: standard output; with ``--quiet``, nowhere."""
    context = click.get_current_context(silent=True)
    is_quiet = context is not None and context.find_root().ensure_object(Common).quiet
    return _Escaping(file=open(os.devnull, "w")) if is_quiet else console()


def print_lines(out: Console, lines: Sequence[Text]) -> None:
    """Print *lines* in one call, if there are any: line by line, a large plan would take seconds."""
    if lines:
        out.print(Text("\n").join(lines))
