"""A command uses its caller, not the process that it runs in, so that it can be called in any process."""

import io
import logging
import os
import re
import resource
import signal
import sys
from pathlib import Path

import pytest

from services.cli.caller import Caller
from tests.cli.command import environment, pkger
from tests.conftest import ROOT

OF_THE_PROCESS = re.compile(
    r"sys\.(std|argv)|os\.environ|/dev/tty|click\.echo\((?!.*file=)|^ +print\((?!.*file=)", re.M
)
"""What only ``Caller`` and ``Root.main`` may use."""


def state() -> tuple[object, ...]:
    """What a command could change in its process."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    root = logging.getLogger()
    umask = os.umask(0)
    os.umask(umask)
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    return sys.stdout, sys.stderr, dict(os.environ), Path.cwd(), umask, limits, handlers, [*root.handlers], root.level


async def test_a_command_leaves_its_process_as_it_is(tmp_path: Path) -> None:
    env, before = environment(tmp_path), state()
    assert (await pkger("--no-color", "kinds", env=env)).code == 0
    assert (await pkger("up", "--platform", "eu", env=env)).code == 1
    assert state() == before


def test_only_the_caller_knows_the_process() -> None:
    paths = (ROOT / "services" / "cli").rglob("*.py")
    known = {path.name for path in paths if OF_THE_PROCESS.search(path.read_text())}
    assert known == {"caller.py", "entrypoint.py"}


@pytest.mark.parametrize(
    ("environ", "columns"), [({}, 80), ({"COLUMNS": "120"}, 120), ({"COLUMNS": "0"}, 80), ({"COLUMNS": "wide"}, 80)]
)
def test_a_terminal_of_unknown_size_has_80_columns(environ: dict[str, str], columns: int) -> None:
    stream = io.StringIO()
    assert Caller(0, stream, stream, environ).columns(stream) == columns
