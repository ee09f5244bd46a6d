"""The command line adds its commands and options to errors, whose texts name the contract."""

import re

import click
import pytest

from services.cli.errors import text_of
from services.cli.main import main
from services.core.errors import (
    ERRORS,
    DeletesExceeded,
    Internal,
    OperationUnfinished,
    PackageEmpty,
    PkgerError,
    StackNotFound,
)


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (StackNotFound("prod"), "ListStacks lists the stacks (`pkger stacks list`)"),
        (PackageEmpty("prod", 2), "set allow_empty to apply it anyway (--allow-empty)"),
        (OperationUnfinished("prod", "operation-1", "BLOCKED"), "resumes it (`pkger operations recover`)"),
        (OperationUnfinished("prod", "operation-1", "APPLYING"), "will resume it (`pkger operations list`)"),
        (DeletesExceeded(2, 1, 2), "(--max-deletes)"),
        (DeletesExceeded(2, 1, 2, "prod"), "(`pkger stacks policy`)"),
        (Internal("r-1"), "details of request r-1"),
    ],
)
def test_an_error_ends_with_a_hint(error: PkgerError, end: str) -> None:
    assert text_of(error).endswith(end)


HINTS = {error.cli_hint for error in ERRORS.values()}
HINTS |= {DeletesExceeded(2, 1, 2, "prod").cli_hint, OperationUnfinished("prod", "operation-1", "APPLYING").cli_hint}


@pytest.mark.parametrize("hint", sorted(HINTS - {""}))
def test_commands_and_options_of_hints_exist(hint: str) -> None:
    for names in re.findall("`pkger (.*?)`", hint):
        assert command(names)
    for option in re.findall(r"--[a-z-]+", hint):
        named = (command("apply"), command("actionsets delete"))
        assert any(option in parameter.opts for each in named for parameter in each.params)


def command(names: str) -> click.Command:
    """The command of those *names*; a KeyError if there is none."""
    named: click.Command = main
    for name in names.split():
        assert isinstance(named, click.Group)
        named = named.commands[name]
    return named
