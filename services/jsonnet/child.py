"""
The process that evaluates one program: a request on standard input, a response on standard output, both JSON.

The program cannot harm the parent process. It can only exhaust the limits of this process.
"""

import contextlib
import json
import os
import re
import resource
import sys
from typing import Any

from services.jsonnet.evaluators import Evaluator, ProgramFaulty, program
from services.jsonnet.imports import Imports

OUT_OF_MEMORY = 12
"""Exit status of a process without enough memory to write a response."""


def main() -> None:
    """Answer and exit without cleanup: the result of a program may be nested too deeply to be freed."""
    try:
        answer = json.dumps(_answer(json.load(sys.stdin.buffer)), ensure_ascii=False)
        sys.stdout.buffer.write(answer.encode(errors="replace"))
        sys.stdout.flush()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    os._exit(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """``{"json": text}``, ``{"fault": [problem, line, column]}``, or ``{"too_large": true}``."""
    evaluate = program(Evaluator(request["evaluator"]))
    _limit(request["memory"], request["seconds"] + 1)
    try:
        result = evaluate(request["text"], Imports(request["folder"], request["bytes"], request["libraries"]))
    except ProgramFaulty as faulty:
        return {"fault": faulty.fault}
    # No string in JSON holds a line break, so this removes only indentation: most of the text of deep results.
    compact = re.sub(r"\n *", "", result)
    if len(compact.encode(errors="replace")) > request["bytes"]:
        return {"too_large": True}
    return {"json": compact}


def _limit(memory: int, cpu_seconds: int) -> None:
    """Limit this process as far as the system allows; the parent process has a timeout as well."""
    for name, limit in (
        ("RLIMIT_AS", memory),
        ("RLIMIT_CPU", cpu_seconds),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_NOFILE", 16),
    ):
        # Some systems lack some of these limits, or refuse to set one.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            kind = getattr(resource, name)
            _, hard = resource.getrlimit(kind)
            most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
