"""The applier with one function more, which does nothing: what is left is what a phase costs by itself."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from applier_svc.__main__ import opened
from applier_svc.actions.call import Call, Function, FunctionTable
from applier_svc.actions.functions.table import PRODUCT_FUNCTIONS
from services.actions.signatures import Effect, Recovery, Signature
from services.rpc.process import run_process

IDLE = "Idle"


async def idle(call: Call) -> Mapping[str, Any]:
    """Do nothing."""
    return {}


def functions() -> FunctionTable:
    """The functions of the product, and ``IDLE``."""
    product = (PRODUCT_FUNCTIONS.find(each.name, each.version) for each in PRODUCT_FUNCTIONS.signatures.all())
    nothing = Function(Signature(IDLE, 1, (), (), Effect.NONE, Recovery.RERUN), idle)
    return FunctionTable([*(each for each in product if each), nothing])


if __name__ == "__main__":
    run_process("applier", partial(opened, functions=functions()))
