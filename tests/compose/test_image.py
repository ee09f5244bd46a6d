"""The image, without Docker: the Dockerfile, and the wheel that is built from the files that it copies."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests import needs
from tests.compose.compose_file import compose_services, instructions
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CODE = ("services", "parser_svc", "planner_svc", "applier_svc", "stack_svc")


def copied() -> list[Path]:
    """The paths in the checkout that the Dockerfile copies."""
    own = [line.split() for line in instructions("COPY") if not line.startswith("--from=")]
    return [Path(source) for *sources, _ in own for source in sources]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names of the files in a wheel built from the files that the Dockerfile copies, and from no others."""
    if not importlib.util.find_spec("hatchling"):
        needs.outside("hatchling, which is not installed; a build that fetches it needs a network")
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in copied():
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, source / path, ignore=shutil.ignore_patterns("gen"))
        else:
            shutil.copy(ROOT / path, source / path)
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(out), str(source)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.glob("*.whl")
    return zipfile.ZipFile(made).namelist()


def test_the_base_is_pinned_to_the_oldest_python_that_we_support() -> None:
    bases = {line.split()[0] for line in instructions("FROM")}
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert len(bases) == 1
    assert re.fullmatch(rf"python:{re.escape(oldest)}(\.\d+)?-slim-[a-z]+", bases.pop())


def test_the_image_has_the_version_of_the_project() -> None:
    services = compose_services({}).values()
    assert {service["image"] for service in services} == {f"pkger:{PROJECT['version']}"}


def test_the_build_context_has_exactly_the_files_that_the_dockerfile_copies() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    assert {Path(line.removeprefix("!")) for line in patterns if line.startswith("!")} == {*copied()}
    assert {"services/gen", "protos/.imports", "**/__pycache__"} == {*patterns[1:]} - {f"!{path}" for path in copied()}


def test_a_container_without_compose_is_checked_as_one_of_compose() -> None:
    [check] = instructions("HEALTHCHECK")
    options, command = check.split(" CMD ")
    of_compose = compose_services({})["stack"]["healthcheck"]
    assert ["CMD", *json.loads(command)] == of_compose["test"]
    named = dict(option.removeprefix("--").split("=") for option in options.split())
    assert named == {key.replace("_", "-"): str(value) for key, value in of_compose.items() if key != "test"}


@pytest.mark.slow
def test_the_wheel_says_that_its_code_has_types_and_under_which_licence_it_is(wheel: list[str]) -> None:
    assert {f"{name}/py.typed" for name in CODE} <= {*wheel}
    assert f"pkger-{PROJECT['version']}.dist-info/licenses/LICENSE" in wheel
    assert "Apache License" in (ROOT / "LICENSE").read_text()


@pytest.mark.slow
def test_the_wheel_has_all_the_code(wheel: list[str]) -> None:
    code = [path.relative_to(ROOT) for name in CODE for path in (ROOT / name).rglob("*.py")]
    assert {str(path) for path in code if path.parts[:2] != ("services", "gen")} <= set(wheel)


@pytest.mark.slow
def test_the_wheel_has_the_generated_code_of_every_proto_and_its_types(wheel: list[str]) -> None:
    protos = [path.relative_to(ROOT / "protos") for path in (ROOT / "protos" / "pkger").rglob("*.proto")]
    endings = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi")
    wanted = {str(proto.with_name(proto.stem + ending)) for proto in protos for ending in endings}
    wanted |= {str(proto.parent / name) for proto in protos for name in ("__init__.py", "py.typed")}
    wanted |= {"pkger/contracts.binpb"}
    assert {name for name in wheel if name.startswith("pkger/")} == wanted


@pytest.mark.slow
def test_the_wheel_has_nothing_else(wheel: list[str]) -> None:
    assert {name.split("/")[0] for name in wheel} == {*CODE, "pkger", f"pkger-{PROJECT['version']}.dist-info"}
    assert not [name for name in wheel if name.startswith("services/gen/") or name.endswith(".pyc")]
    assert f"pkger-{PROJECT['version']}.dist-info/entry_points.txt" in wheel
