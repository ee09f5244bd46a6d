"""Generates services/gen from protos/: the messages, the gRPC stubs and their types.

Run by the wheel build (hatchling loads this file as its build hook) and by ``make gen``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
OUT = ROOT / "services" / "gen"


def generate() -> None:
    """
    Write the Python of every proto anew, so that nothing of a removed proto stays behind.

    Raises:
        SystemExit: protoc refused a file; its message is on standard error.
    """
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    files = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    outputs = [f"--{plugin}_out={OUT}" for plugin in ("python", "grpc_python", "mypy", "mypy_grpc")]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", *outputs, *files]
    # protoc looks for its mypy plugins on PATH; they are installed beside the interpreter.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(  # noqa: S603
        command, cwd=ROOT, env={**os.environ, "PATH": path}, check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    for folder in {path.parent for path in OUT.rglob("*_pb2.py")}:
        (folder / "__init__.py").touch()
        (folder / "py.typed").touch()


if __name__ == "__main__":
    generate()
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class GenerateHook(BuildHookInterface):  # type: ignore[type-arg]
        """Runs the generator before hatchling collects the files of a wheel or an editable install."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Generate; *version* and *build_data* are hatchling's and stay as they are."""
            generate()
