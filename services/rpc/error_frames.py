"""Errors that keep no variables of the functions that they left."""

import inspect
import traceback
from contextlib import suppress

_SUSPENDABLE = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def forget_variables(error: BaseException) -> None:
    """
    Clear the variables of the functions that *error*, and the errors before it, have left.

    A traceback has the variables of these functions: a whole package or listing. It is often part of a cycle, and
    cycles are collected late (``services.rpc.process.collect_seldom``). So a few failed calls would take gigabytes. The
    places in the traceback stay.

    Coroutines and generators keep theirs: an error that several tasks receive has the frames of all of them, and one of
    them may still wait in a handler of the error.
    """
    cause: BaseException | None = error
    while cause is not None:
        for frame, _ in traceback.walk_tb(cause.__traceback__):
            if not frame.f_code.co_flags & _SUSPENDABLE:
                # A function that still runs keeps its variables.
                with suppress(RuntimeError):
                    frame.clear()
        cause = cause.__context__


def forget_traceback(error: BaseException) -> None:
    """
    Cut the traceback of *error*, and of the errors before it, into single places.

    In contrast to ``forget_variables``, the variables of coroutines are freed, too, unless these still run. An error
    that is reported to a caller needs no traceback.
    """
    cause: BaseException | None = error
    while cause is not None:
        place = cause.__traceback__
        while place is not None:
            place.tb_next, place = None, place.tb_next
        cause = cause.__context__
