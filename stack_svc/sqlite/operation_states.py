"""
Sets of states of operations, as SQL: SQLite uses a partial index only for a query with the same text as its condition.
"""

from collections.abc import Collection

from services.engine.operation import FINISHED, OperationState


def _is_one_of(states: Collection[OperationState]) -> str:
    listed = ", ".join(f"'{state}'" for state in OperationState if state in states)
    return f"state IN ({listed})"


IS_FINISHED = _is_one_of(FINISHED)
IS_UNFINISHED = _is_one_of([state for state in OperationState if state not in FINISHED])
