"""The contracts, from which clients are generated, stay compatible with protos/image.binpb."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import needs
from tests.conftest import ROOT

PLANNER = Path("protos/pkger/planner/v1/planner.proto")
FIELD = "  bool allow_empty = 2;\n"

pytestmark = [pytest.mark.slow, needs.program("buf")]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that `make lint-protos` reads."""
    shutil.copytree(ROOT / "protos", tmp_path / "protos")
    shutil.copy2(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path


def make(checkout: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and output of make, without a rebuild of the environment and the generated code."""
    built = ["--old-file=.venv/.stamp", "--old-file=services/gen/.stamp"]
    env = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}}
    done = subprocess.run(
        ["make", *built, *arguments], cwd=checkout, env=env, check=False, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def edit(checkout: Path, old: str, new: str) -> None:
    """Replace *old* in the planner's contract."""
    text = (checkout / PLANNER).read_text()
    assert text.count(old) == 1
    (checkout / PLANNER).write_text(text.replace(old, new))


def test_the_contracts_equal_the_image(checkout: Path) -> None:
    assert make(checkout, "lint-protos")[0] == 0


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ("", 'field "2" with name "allow_empty" on message "PlanOptions" was deleted'),
        ("  bool permit_empty = 2;\n", 'changed name from "allow_empty" to "permit_empty"'),
        ("  string allow_empty = 2;\n", 'changed type from "bool" to "string"'),
    ],
    ids=["removed", "renamed", "retyped"],
)
def test_a_change_that_breaks_clients_is_refused(checkout: Path, new: str, problem: str) -> None:
    edit(checkout, FIELD, new or "  reserved 2;\n")
    before = (checkout / "protos/image.binpb").read_bytes()

    for target in ["lint-protos", "contracts"]:
        status, output = make(checkout, target)
        assert status != 0
        assert problem in output

    assert (checkout / "protos/image.binpb").read_bytes() == before


def test_a_breaking_change_is_accepted_with_a_new_image(checkout: Path) -> None:
    edit(checkout, FIELD, "  reserved 2;\n")
    assert make(checkout, "contracts", "BREAKING=1")[0] == 0
    assert make(checkout, "lint-protos")[0] == 0


def test_an_addition_is_protected_once_it_is_in_the_image(checkout: Path) -> None:
    """If the lint did not require a new image, the field could be removed again unnoticed."""
    added = "  // New.\n  bool is_new = 99;\n"
    edit(checkout, FIELD, FIELD + added)

    status, output = make(checkout, "lint-protos")
    assert status != 0
    assert "Run `make contracts`" in output

    assert make(checkout, "contracts")[0] == 0
    assert make(checkout, "lint-protos")[0] == 0

    edit(checkout, added, "")
    assert make(checkout, "lint-protos")[0] != 0
