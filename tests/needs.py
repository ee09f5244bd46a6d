"""
What a machine may lack: the only reasons for which a test is skipped.

A run prints these reasons, and fails if a test is skipped for any other one (tests/conftest.py).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Never

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
"""The recorded results, which hold text of other projects and are not in this repository."""

PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
"""Where programs are looked for: in the virtual environment first."""

_START = "needs "


def is_known(reason: str) -> bool:
    """Whether *reason* comes from this module."""
    return reason.startswith(_START)


def program(name: str) -> pytest.MarkDecorator:
    """Skip without an installed program."""
    return _skip_without(shutil.which(name, path=PATH) is not None, f"{name}, which is not installed")


def node(major: int) -> pytest.MarkDecorator:
    """Skip without Node.js of a major version or later."""
    return _skip_without(_node_version() >= major, f"Node.js {major} or later, which is not installed")


def shared(folder: Path) -> pytest.MarkDecorator:
    """Skip without *folder* of ``SHARED``."""
    name = folder.relative_to(SHARED.parent)
    return _skip_without(folder.exists(), f"../{name}, which is not beside this checkout")


def variable(name: str) -> pytest.MarkDecorator:
    """Skip without an environment variable that names something outside, such as a server."""
    return _skip_without(bool(os.environ.get(name)), f"{name}, which is not set")


def path(name: str) -> pytest.MarkDecorator:
    """Skip without a file or folder of the system, such as ``/proc``."""
    return _skip_without(Path(name).exists(), f"{name}, which this system does not have")


def root() -> pytest.MarkDecorator:
    """Skip without the rights of root, who alone can make files of another user."""
    return _skip_without(os.geteuid() == 0, "the rights of root, which this user does not have")


def outside(what: str) -> Never:
    """Skip the running test, because it has found out that *what* is missing outside the repository."""
    pytest.skip(f"{_START}{what}")


def _skip_without(is_there: bool, what: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not is_there, reason=f"{_START}{what}")


def _node_version() -> int:
    """The major version of Node.js; 0 when it is missing."""
    command = shutil.which("node", path=PATH)
    if command is None:
        return 0
    printed = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    return int(printed.removeprefix("v").partition(".")[0])
