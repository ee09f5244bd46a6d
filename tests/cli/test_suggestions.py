"""Suggestions of a conflict at a terminal."""

from pathlib import Path

import pytest

from tests.cli.command import at_terminal, environment, pkger
from tests.cli.test_installs import configure
from tests.cluster import Cluster


@pytest.mark.parametrize(
    ("typed", "code", "text"),
    [
        ([(b"Plan it?", b"y\n"), (b"Apply this plan?", b"y\n")], 0, b"base-labels 1.2.0 -> 1.3.0"),
        ([(b"Plan it?", b"1\n"), (b"Apply this plan?", b"n\n")], 1, b"not applied; nothing was written"),
        ([(b"Plan it?", b"\n")], 7, b"Suggestions:"),
        ([(b"Plan it?", b"9\n")], 7, b"9 is no suggestion; nothing was written"),
    ],
)
async def test_a_suggestion_is_planned_when_its_number_is_typed(
    own_services: Cluster, tmp_path: Path, typed: list[tuple[bytes, bytes]], code: int, text: bytes
) -> None:
    await configure(own_services, tmp_path)
    env = environment(tmp_path, own_services.addresses)
    assert (await pkger("install", "base-labels@~1.2", env=env)).code == 0
    ended, shown = await at_terminal("install", "team-dashboards", answers=typed, env=env)
    assert (ended, text in shown) == (code, True), shown
    installed = (await pkger("packages", "list", env=env)).out
    assert ("team-dashboards" in installed) == (code == 0)
