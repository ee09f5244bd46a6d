"""The log of a service on standard error."""

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from services.rpc.log import log_to_stderr


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers.clear()
    try:
        log_to_stderr()
        yield
    finally:
        root.handlers[:] = before
        root.setLevel(level)


def test_a_cancelled_task_is_not_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr():
        for error in (asyncio.CancelledError(), ValueError("wrong")):
            logging.getLogger("asyncio").error("a task ended", exc_info=error)
    [line] = capfd.readouterr().err.splitlines()
    assert "ValueError: wrong" in line


def test_text_that_is_not_utf_8_is_logged_with_replacements(capfd: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr():
        logging.getLogger("pkger.http").info("request", extra={"user_agent": "a\udcffb", "status": 200})
    [line] = capfd.readouterr().err.splitlines()
    written = json.loads(line)
    assert (written["message"], written["user_agent"], written["status"]) == ("request", "a?b", 200)


def test_a_credential_of_an_address_is_not_logged(capfd: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr():
        logging.getLogger("test").warning("failed", extra={"problem": "https://example.com/?token=x-y"})
    assert "https://example.com/?token=(hidden)" in capfd.readouterr().err
