"""The table of the functions of the product."""

from applier_svc.actions.call import Function, FunctionTable, Run
from applier_svc.actions.functions.delete_snapshot import delete_snapshot
from applier_svc.actions.functions.export_stack import export_stack
from applier_svc.actions.functions.restore_stack import restore_stack
from applier_svc.actions.functions.sleep import sleep
from applier_svc.actions.functions.verify_snapshot import verify_snapshot
from services.actions.signatures import FUNCTIONS


def _function(name: str, run: Run) -> Function:
    signature = FUNCTIONS.find(name)
    assert signature is not None  # noqa: S101 - each function of the product has a signature
    return Function(signature, run)


PRODUCT_FUNCTIONS = FunctionTable(
    [
        _function("ExportStack", export_stack),
        _function("RestoreStack", restore_stack),
        _function("VerifySnapshot", verify_snapshot),
        _function("DeleteSnapshot", delete_snapshot),
        _function("Sleep", sleep),
    ]
)
"""The functions that an applier has unless a test gives it others."""
