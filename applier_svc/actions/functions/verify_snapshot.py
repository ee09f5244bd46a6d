"""VerifySnapshot: reads a snapshot, and fails if it is not as it was stored."""

from collections.abc import Mapping
from typing import Any

from applier_svc.actions.call import Call
from services.rpc.snapshot_reading import read_snapshot


async def verify_snapshot(call: Call) -> Mapping[str, Any]:
    """Check the digests of a snapshot; the outputs say what was read."""
    snapshot = await read_snapshot(call.services.stack, call.arguments["snapshot"])
    return {"bytes": snapshot.size, "objects": snapshot.manifest.objects, "parts": snapshot.part_count}
