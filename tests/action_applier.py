"""The applier with functions of tests, which write down their calls, or tell their secrets."""

import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import applier_svc.__main__ as applier
from applier_svc import failpoints
from applier_svc.actions.call import Call, Function, FunctionError, FunctionTable
from services.actions.signatures import Recovery
from services.rpc.process import Service, run_process
from services.settings import Settings
from tests.action_sets.functions import signature_of, with_product

FILE = "notes.log"
"""The calls in the folder of the databases; a line has a step and a key."""


def notes(folder: Path) -> list[tuple[str, str]]:
    """The step and the key of each call, in order."""
    file = folder / FILE
    lines = file.read_text().splitlines() if file.exists() else []
    return [(step, key) for step, _, key in (line.partition(" ") for line in lines)]


async def note(folder: Path, call: Call) -> Mapping[str, Any]:
    """Write down a call."""
    with (folder / FILE).open("a") as file:
        file.write(f"{call.arguments['step']} {call.key}\n")
    return {"out": call.arguments["step"]}


async def tell(call: Call) -> Mapping[str, Any]:
    """Emit and log the secret, then return it, complain with it or crash with it, as the step says."""
    secret = call.arguments["secret"]
    logging.getLogger("pkger.tests").warning("told %s", secret)
    await call.emit({"emitted": secret})
    match call.arguments["step"]:
        case "complain":
            raise FunctionError(f"it is {secret}")
        case "crash":
            raise ValueError(secret)
        case _:
            return {"out": [secret]}


def functions(folder: Path) -> FunctionTable:
    """The functions of the product, and those of tests."""
    return with_product(
        Function(signature_of("Note", Recovery.RERUN), partial(note, folder)),
        Function(signature_of("NoteOnce", Recovery.ONCE), partial(note, folder)),
        Function(signature_of("Tell", Recovery.RERUN), tell),
    )


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """The applier, with the functions of tests."""
    async with applier.opened(settings, functions=functions(settings.data)) as service:
        yield service


if __name__ == "__main__":
    failpoints.install(failpoints.deadly(os.environ.get(failpoints.VARIABLE, "")))
    run_process("applier", opened)
