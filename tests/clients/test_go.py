"""A client in Go: docs/clients.md, from an empty folder to a watched apply."""

from pathlib import Path

import pytest

from tests import needs
from tests.clients.page import assert_client_runs, assert_shown_code_is_run
from tests.conftest import ROOT
from tests.ports import Home


def test_the_page_shows_the_program() -> None:
    assert_shown_code_is_run("Go", "go", ROOT / "examples" / "clients" / "go" / "main.go")


@pytest.mark.slow
@needs.program("go")
@needs.program("buf")
@pytest.mark.timeout(600)  # the first build compiles gRPC; later ones take seconds
async def test_a_client_is_generated_built_and_run(home: Home, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("client")
    await assert_client_runs("Go", home, folder)
