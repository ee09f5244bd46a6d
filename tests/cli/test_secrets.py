"""Secrets for an apply: on the command line, at the terminal, from standard input; none of them is shown."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.apply.packages import LABEL, an_endpoint, text
from tests.cli.command import at_terminal, environment, pkger, process_at_terminal
from tests.cluster import Calls, Cluster

CANARY = "canary-8a1f"


def warning(key: str) -> str:
    """The line on standard error about a value on the command line."""
    return (
        f"warning: --secret {key}=VALUE: other users of this machine can read the value while the command runs; write"
        f" --secret {key} and enter the value, or use --secret-file FILE\n"
    )


PACKAGE = text(LABEL, an_endpoint("Slack", "chat", "chat"))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "package.json"
    path.write_text(PACKAGE)
    return str(path)


async def test_a_value_may_stand_on_the_command_line_with_any_characters(
    services: Cluster, tmp_path: Path, file: str
) -> None:
    env = environment(tmp_path, services.addresses)
    applied = await pkger("apply", "-f", file, "--secret", f"slack-token={CANARY}==", env=env)
    assert (applied.code, applied.err) == (0, warning("slack-token"))
    assert "  + Secret slack-token\n" in applied.out
    assert CANARY not in applied.out
    assert await services.secret_keys() == ["slack-token"]
    again = await pkger("apply", "-f", file, "--secret", "slack-token=other", env=env)
    assert "  ~ Secret slack-token  (overwritten; cannot be undone)\n" in again.out


async def test_values_are_read_from_standard_input_line_by_line(services: Cluster, tmp_path: Path, file: str) -> None:
    env = environment(tmp_path, services.addresses)
    secrets = ["--secret", "slack-token", "--secret", "there=1", "--secret", "last"]
    applied = await pkger("apply", "-f", file, *secrets, env=env, typed=f"{CANARY}\r\nother".encode())
    assert (applied.code, applied.err) == (0, warning("there"))
    assert await services.secret_keys() == ["last", "slack-token", "there"]


async def test_values_are_asked_for_at_a_terminal_and_not_shown(services: Cluster, tmp_path: Path, file: str) -> None:
    answers = [(b"Secret slack-token: ", f"{CANARY}\n".encode()), (b"Apply this plan? [y/N]", b"y\n")]
    env = environment(tmp_path, services.addresses)
    code, shown = await at_terminal("apply", "-f", file, "--secret", "slack-token", answers=answers, env=env)
    assert code == 0
    assert CANARY.encode() not in shown
    assert await services.secret_keys() == ["slack-token"]


@pytest.mark.slow
async def test_ctrl_c_instead_of_a_value_writes_nothing(module_services: Cluster, tmp_path: Path, file: str) -> None:
    # The question ends with its blank, which is printed after earlier input is discarded.
    answers = [(b"Secret slack-token: ", b"\x03")]
    env = environment(tmp_path, module_services.addresses)
    code, shown = await process_at_terminal("apply", "-f", file, "--secret", "slack-token", answers=answers, env=env)
    assert code == 1
    assert b"Traceback" not in shown
    assert await module_services.resources() == []


async def test_a_plan_takes_keys_and_does_not_ask(module_services: Cluster, tmp_path: Path, file: str) -> None:
    env = environment(tmp_path, module_services.addresses)
    without = await pkger("plan", "-f", file, env=env)
    assert "secrets not given: slack-token" in without.out
    for secret, warned in (("slack-token", ""), (f"slack-token={CANARY}", warning("slack-token"))):
        planned = await pkger("plan", "-f", file, "--secret", secret, env=env)
        assert (planned.code, planned.err) == (0, warned)
        assert "  + Secret slack-token\n" in planned.out
        assert "secrets not given" not in planned.out
    assert await module_services.secret_keys() == []


@pytest.mark.parametrize(
    ("secrets", "typed", "code", "message"),
    [
        ([f"={CANARY}"], "", 2, "the key is empty; write KEY=VALUE"),
        ([f"k={CANARY}", f"k={CANARY}"], "", 2, "--secret k: given twice"),
        ([f"good={CANARY}", "k="], "", 1, "Error: --secret k: the value is empty\n"),
        ([f"good={CANARY}", "k"], "", 1, "Error: --secret k: the value is empty\n"),
        ([f"good={CANARY}", "k"], "\udcff", 1, "Error: --secret k: the value is not UTF-8 text\n"),
        ([f"good={CANARY}", "k\n=x"], "", 1, "Error: secret_keys: 'k\\n': a key is 1 to 200 characters"),
        (
            ["slack-token=x", "k=" + "x" * 65_537],
            "",
            1,
            "Error: secrets: the value of 'k' is 1 to 65,536 characters; it has 65,537\n",
        ),
    ],
)
async def test_an_invalid_secret_is_reported_without_its_value(
    module_services: Cluster,
    calls: Calls,
    tmp_path: Path,
    file: str,
    secrets: Sequence[str],
    typed: str,
    code: int,
    message: str,
) -> None:
    options = [word for secret in secrets for word in ("--secret", secret)]
    env = environment(tmp_path, module_services.addresses)
    end = await pkger("apply", "-f", file, *options, env=env, typed=typed.encode(errors="surrogateescape"))
    assert end.code == code
    assert message in end.err
    assert CANARY not in end.out + end.err
    assert "Traceback" not in end.err
    assert calls.count("Mutate") == 0


async def test_standard_input_cannot_hold_a_package_and_a_value(tmp_path: Path) -> None:
    end = await pkger("apply", "-f", "-", "--secret", "k", env=environment(tmp_path), typed=PACKAGE.encode())
    assert end.code == 2
    assert "--secret k: standard input holds the package" in end.err
