"""Tables as text: at most as wide as the terminal; elsewhere as wide as their content."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from services.cli.common import caller
from services.cli.output.escapes import one_line

_GAP = 2
_WHOLE = frozenset({"ID", "UPDATED", "RESOURCES", "REVISION", "TIME", "MADE", "BEGAN", "STEPS"})
"""Titles of columns that are never wrapped."""

_LEAST = 8
"""The smallest width of a column in a table that is too wide."""


def print_table(out: Console, titles: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None) -> None:
    """
    Print *rows* below *titles*.

    At a terminal, cells that do not fit continue in the next line. Elsewhere nothing is wrapped: a name that is cut can
    neither be copied nor piped.

    Args:
        out: The console to print to.
        titles: One for each column.
        rows: Rows of as many cells.
        width: Columns of the terminal; None: its actual width, unlimited without a terminal.
    """
    cells = [tuple(titles), *(tuple(map(one_line, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    limit = width if width is not None else _terminal_width(out)
    if limit:
        # Wrapped ids, times and numbers are unreadable.
        loose = [at for at, title in enumerate(titles) if title not in _WHOLE]
        _shrink(widths, limit - _GAP * (len(widths) - 1), loose)
    gap = " " * _GAP
    lines: list[str] = []
    for row in cells:
        if all(len(cell) <= size for cell, size in zip(row, widths, strict=True)):
            lines.append(gap.join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip())
            continue
        pieces = [_broken(cell, size) for cell, size in zip(row, widths, strict=True)]
        for number in range(max(map(len, pieces))):
            parts = (each[number] if number < len(each) else "" for each in pieces)
            lines.append(gap.join(part.ljust(size) for part, size in zip(parts, widths, strict=True)).rstrip())
    out.print(Text(lines[0], "bold"))
    # Styling tens of thousands of lines would take seconds.
    out.file.writelines(f"{line}\n" for line in lines[1:])


def _terminal_width(out: Console) -> int:
    if not out.is_terminal:
        return 0
    return max(caller().columns(out.file), 40)


def _shrink(widths: list[int], room: int, loose: Sequence[int]) -> None:
    """Narrow the widest of the *loose* columns until the row fits, or all of them have the smallest width."""
    while sum(widths) > room and (widest := max(loose, key=widths.__getitem__, default=None)) is not None:
        if widths[widest] <= _LEAST:
            return
        widths[widest] -= 1


def _broken(cell: str, size: int) -> list[str]:
    return [cell[at : at + size] for at in range(0, len(cell), size)] or [""]
