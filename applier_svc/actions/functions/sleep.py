"""Sleep: waits. After a restart, it waits the rest only."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from applier_svc.actions.call import Call
from services.actions.durations import parse_duration

BETWEEN_LOOKS = 1.0
"""Longest pause in seconds, after which its progress is reported."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def sleep(call: Call) -> Mapping[str, Any]:
    """Wait for ``duration``; ``until`` is when that ends, by the clock of the store."""
    length = (parse_duration(call.arguments["duration"]) or 0) * 1000
    if "until" in call.emitted:
        end = (datetime.fromisoformat(call.emitted["until"]) - _EPOCH) // timedelta(microseconds=1)
    else:
        end = call.store_time() + length
        await call.emit({"until": (_EPOCH + timedelta(microseconds=end)).isoformat().replace("+00:00", "Z")})
    while (left := end - call.store_time()) > 0:
        await asyncio.sleep(min(left / 1_000_000, BETWEEN_LOOKS))
        await call.report(100 - 100 * max(end - call.store_time(), 0) // max(length, 1))
    return {}
