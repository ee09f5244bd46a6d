"""The log of a service on standard error."""

import asyncio
import logging

import pytest

from services.rpc.log import log_to_stderr


def test_a_cancelled_task_is_not_logged(capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        log_to_stderr()
        for error in (asyncio.CancelledError(), ValueError("wrong")):
            logging.getLogger("asyncio").error("a task ended", exc_info=error)
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    [line] = capfd.readouterr().err.splitlines()
    assert "ValueError: wrong" in line
