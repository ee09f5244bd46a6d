"""docs/security.md has all threats, and the checks that it names give the results that it names."""

import re
from pathlib import Path

import pytest

from services.access.token_file import home_token
from services.gateway.settings import load_gateway
from tests import needs
from tests.cli.command import environment
from tests.compose.processes import run
from tests.conftest import ROOT
from tests.gateway.gateway import gateway
from tests.ports import Home, home_at_ports

PAGE = (ROOT / "docs" / "security.md").read_text()

ROWS = re.findall(r"^\| (T\d+) \| [^|]+ \| ([^|]+) \| ([^|]*) ?\|$", PAGE, re.MULTILINE)
"""Each threat, with its answer and its check."""

CHECKS = {threat: re.findall(r"`([^`]+)`", check) for threat, _, check in ROWS}
"""The code in each check."""


def test_each_threat_has_an_answer_and_a_check() -> None:
    assert [threat for threat, _, _ in ROWS] == [f"T{number}" for number in range(1, 17)]
    assert all(bool(check.strip()) is not answer.startswith("not answered") for _, answer, check in ROWS)


def test_the_tests_that_the_page_names_exist() -> None:
    files = re.findall(r"tests/\S+\.py", PAGE)
    assert len(files) >= 4
    assert all((ROOT / file).is_file() for file in files)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The environment of a home."""
    return environment(tmp_path) | {"PATH": needs.PATH}


async def outcome(command: str, home: Home, env: dict[str, str]) -> str:
    """What a command of the page prints, for this home."""
    script = home.at_ports(command).replace("~/.pkger", str(home.folder))
    _, output, errors = await run(["sh", "-c", script], env, home.folder)
    return output + errors


@pytest.mark.slow
@needs.program("grpcurl")
async def test_strangers_of_the_machine_are_refused(tmp_path: Path, env: dict[str, str]) -> None:
    plain, *_ = CHECKS["T1"]
    private, without_token, *_ = CHECKS["T2"]
    rotate, *_ = CHECKS["T4"]
    tokened = "grpcurl -plaintext -expand-headers -H 'authorization: Bearer ${PKGER_TOKEN}' 127.0.0.1:50054 list"
    async with home_at_ports(tmp_path) as home:
        assert "PKGER_ALLOW_PLAINTEXT=1" in await outcome(plain, home, env)
        assert await outcome(private, home, env) == ""
        assert "code = Unauthenticated" in await outcome(without_token, home, env)
        env["PKGER_TOKEN"] = (await outcome("pkger token local", home, env)).strip()
        assert "pkger.stack.v1.StackService" in await outcome(tokened, home, env)
        await outcome(rotate, home, env)
        assert "code = Unauthenticated" in await outcome(tokened, home, env)


@pytest.mark.slow
@needs.program("curl")
async def test_pages_of_other_sites_are_refused(tmp_path: Path, env: dict[str, str]) -> None:
    curl, host, *_ = CHECKS["T15"]
    origin = "Origin: https://example.com"
    assert origin in curl
    async with (
        home_at_ports(tmp_path) as home,
        gateway(load_gateway({}), home.services, home_token(tmp_path)) as address,
    ):
        for header, code in ((origin, "403"), (host, "421"), ("Accept: */*", "401")):
            command = curl.replace("127.0.0.1:8086", address).replace(origin, header)
            assert (await outcome(f"{command} -s -o /dev/null -w '%{{http_code}}'", home, env)) == code
