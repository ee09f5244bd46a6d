"""Logs one JSON object per line to standard error."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import orjson

from services.core.masking import masked
from services.rpc.call import request_id

log_mask: ContextVar[Callable[[str], str]] = ContextVar("log_mask", default=str)
"""Removes values of secrets from lines of the log, in the context of work that has such values."""

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formats the message, the request id of the current call, and all fields given as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return *record* as one line of JSON, with masked addresses and secrets."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if current := request_id.get():
            line["request_id"] = current
        line |= {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return log_mask.get()(masked(_json(line)))


def _json(line: dict[str, Any]) -> str:
    try:
        return orjson.dumps(line, default=str).decode()
    except orjson.JSONEncodeError:
        # Bytes of a header, or of a name of a file, that are no UTF-8: no client keeps its requests out of the log.
        return json.dumps(line, default=str, ensure_ascii=False).encode(errors="replace").decode()


def _is_of_interest(record: logging.LogRecord) -> bool:
    """False for a cancelled task: asyncio reports tasks that a stopping server cancels before they start."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def log_to_stderr() -> None:
    """Send all log records of this process from level INFO to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(_is_of_interest)
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
