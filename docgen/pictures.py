"""
Terminal pictures of the documents, from real runs: ``python -m docgen.pictures``, or ``make pictures``.

A package is applied, changed, and applied again at a terminal; the picture shows the second apply.
"""

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from docgen.reference import DOCS

PICTURE = DOCS / "pictures" / "apply.svg"

_EXAMPLES = DOCS.parent / "examples"
_PKGER = Path(sys.executable).with_name("pkger")
_COLUMNS = 92

_CHANGES = (
    ("everySeconds: 604800", "everySeconds: 1209600"),
    ("  name: vehicle\n", "  name: driver\n"),
)
"""Replacements in examples/fleet.yml between the two applies."""

_PROMPT = b"[y/N]"
_COMMAND = ("apply", "-f", "labels.json", "-f", "fleet.yml", "--stack", "fleet")
_ERASED = re.compile(r"[^\n]*\r(?:\x1b\[K)?(?=[^\n])")
"""Part of a line that is overwritten: progress, which the next progress replaces."""


def apply_at_a_terminal() -> str:
    """The output of an apply of a changed package at a terminal, with its colours as ANSI codes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "labels.json").write_bytes((_EXAMPLES / "labels.json").read_bytes())
        package = (_EXAMPLES / "fleet.yml").read_text()
        (folder / "fleet.yml").write_text(package)
        clean = {key: value for key, value in os.environ.items() if not key.startswith("PKGER_")}
        env = clean | {"PKGER_HOME": str(folder / "home"), "TERM": "xterm-256color", "COLUMNS": str(_COLUMNS)}
        subprocess.run([_PKGER, *_COMMAND, "--yes"], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        for old, new in _CHANGES:
            assert old in package, old  # noqa: S101 - the example and this module change together
            package = package.replace(old, new)
        (folder / "fleet.yml").write_text(package)
        return _shown(_at_terminal(folder, env))


def _at_terminal(folder: Path, env: dict[str, str]) -> str:
    """Run the command at a pseudo-terminal, and answer its question with yes."""
    ours, theirs = pty.openpty()
    command = [str(_PKGER), *_COMMAND]
    with subprocess.Popen(command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:  # noqa: S603
        os.close(theirs)
        output, is_answered = b"", False
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            output += piece
            if _PROMPT in output and not is_answered:
                os.write(ours, b"y\n")
                is_answered = True
    os.close(ours)
    if process.returncode:
        raise SystemExit(output.decode())
    return output.decode()


def _shown(output: str) -> str:
    """The text that stays on the screen: *output* without the overwritten progress."""
    lines = output.replace("\r\n", "\n")
    while (shorter := _ERASED.sub("", lines)) != lines:
        lines = shorter
    return f"$ pkger {' '.join(_COMMAND)}\n{lines}".replace("\x1b[K", "")


def picture(output: str) -> str:
    """The SVG of *output*. It uses no font from another server, so that it looks the same everywhere."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(output.rstrip("\n")), soft_wrap=False)
    plain = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace("Fira Code, ", "")
    return console.export_svg(title="pkger", theme=MONOKAI, code_format=plain, unique_id="apply")


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(apply_at_a_terminal()))
