"""The Python client of docs/clients.md: the commands of the page generate and run it in an empty folder."""

from pathlib import Path

import pytest

from tests.clients.page import assert_client_runs, assert_shown_code_is_run
from tests.conftest import ROOT
from tests.ports import Home


def test_the_page_shows_the_program() -> None:
    assert_shown_code_is_run("Python", "python", ROOT / "examples" / "clients" / "python" / "client.py")


def _put_first(folder: Path) -> None:
    """Let the client import the generated packages, not those of this checkout, whose environment it uses."""
    for generated in (folder / "gen").rglob("v1"):
        (generated / "__init__.py").touch()


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_client_is_generated_and_run(home: Home, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("client")
    await assert_client_runs("Python", home, folder, _put_first)
