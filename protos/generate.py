"""Generates services/gen from protos/: messages, gRPC stubs, their types, and the contracts with their comments.

Run by the wheel build (hatchling loads this file as its build hook) and by ``make gen``.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
OUT = ROOT / "services" / "gen"

IMPORTS = PROTOS / ".imports"
"""Imported protos of other projects: a second module for buf, which finds imports only there without a network."""

IMPORTED = ("google/api/annotations.proto", "google/api/field_behavior.proto", "google/api/http.proto")
"""The imported protos, as googleapis-common-protos names them."""

CONTRACTS = OUT / "pkger" / "contracts.binpb"
"""A FileDescriptorSet of all protos with their comments, from which the HTTP API makes its OpenAPI document."""


def generate() -> None:
    """
    Write the Python of every proto into an empty folder, so that no code of a removed proto remains.

    Raises:
        SystemExit: protoc rejected a file (the exception has its message), or an import is not installed.
    """
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    _copy_imports()
    CONTRACTS.parent.mkdir()
    files = sorted(str(path.relative_to(PROTOS)) for path in (PROTOS / "pkger").rglob("*.proto"))
    outputs = [f"--{plugin}_out={OUT}" for plugin in ("python", "grpc_python", "mypy", "mypy_grpc")]
    outputs += [f"--descriptor_set_out={CONTRACTS}", "--include_source_info"]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", f"-I{IMPORTS}", *outputs, *files]
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


def _copy_imports() -> None:
    """Copy the imported protos from the installed package."""
    package = importlib.util.find_spec("google.api")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("googleapis-common-protos is not installed: the protos import google/api/annotations.proto")
    installed = Path(next(iter(package.submodule_search_locations))).parent.parent
    shutil.rmtree(IMPORTS, ignore_errors=True)
    for name in IMPORTED:
        (IMPORTS / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(installed / name, IMPORTS / name)


if __name__ == "__main__":
    generate()
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class GenerateHook(BuildHookInterface):  # type: ignore[type-arg]
        """Runs the generator before hatchling collects the files of a wheel or an editable install."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Generate; the arguments of hatchling, *version* and *build_data*, are not used."""
            generate()
