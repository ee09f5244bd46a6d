"""The consoles that commands print to: they escape control characters, and cut nothing."""

from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Span, Text

from services.cli.common import Common
from services.cli.output.escapes import escaped

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
    return _console(stderr=stderr)


def progress_console() -> Console:
    """Where progress is printed: standard output; with ``--quiet``, nowhere."""
    return _console(quiet=_common().quiet)


def _console(*, stderr: bool = False, quiet: bool = False) -> Console:
    common = _common()
    return _Escaping(
        file=common.caller.stderr if stderr else common.caller.stdout,
        quiet=quiet,
        no_color=common.no_color or None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
        width=_UNBOUNDED,
        _environ=common.caller.environ,
    )


def _common() -> Common:
    """The common options of the running command; outside a command, the defaults."""
    context = click.get_current_context(silent=True)
    return context.find_root().ensure_object(Common) if context else Common()


def print_lines(out: Console, lines: Sequence[Text]) -> None:
    """Print *lines* in one call, if there are any: line by line, a large plan would take seconds."""
    if lines:
        out.print(Text("\n").join(lines))


def print_warnings(warnings: Iterable[str]) -> None:
    """Print a line for each of *warnings* on standard error."""
    out = console(stderr=True)
    for warning in warnings:
        out.print(Text(f"warning: {warning}", "yellow"))
