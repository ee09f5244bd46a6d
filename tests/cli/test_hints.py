"""The command line adds its commands and options to errors, whose texts name the contract."""

import re

import pytest
from click.testing import CliRunner

from services.cli.errors import HINTS, text_of
from services.cli.main import main
from services.core.errors import Internal, OperationUnfinished, PackageEmpty, PkgerError, StackNotFound


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (StackNotFound("prod"), "ListStacks lists the stacks (`pkger stacks list`)"),
        (PackageEmpty("prod", 2), "set allow_empty to apply it anyway (--allow-empty)"),
        (OperationUnfinished("prod", "operations/1", "BLOCKED"), "resumes it (`pkger operations recover`)"),
        (OperationUnfinished("prod", "operations/1", "APPLYING"), "will resume it (`pkger operations list`)"),
        (Internal("r-1"), "details of request r-1"),
    ],
)
def test_an_error_ends_with_a_hint(error: PkgerError, end: str) -> None:
    assert text_of(error).endswith(end)


@pytest.mark.parametrize("hint", sorted(set(HINTS.values())))
def test_commands_and_options_of_hints_exist(hint: str) -> None:
    for command in re.findall("`pkger (.*?)`", hint):
        assert CliRunner().invoke(main, [*command.split(), "--help"]).exit_code == 0
    for option in re.findall(r"--[a-z-]+", hint):
        assert option in CliRunner().invoke(main, ["apply", "--help"]).output
