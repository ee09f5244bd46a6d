"""Credentials in addresses: no output of the command has one, and the platform gets them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.apply.packages import an_object, text
from tests.cli.command import Ended, environment, pkger
from tests.cluster import Cluster
from tests.drivers.client import update

HOOK = "https://hooks.slack.com/services/"
FIRST, SECOND, LIVE = "T0/B0/alpha", "T0/B0/beta", "T0/B0/gamma"


@pytest.fixture
def env(services: Cluster, tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path, services.addresses)


def package(path: str) -> str:
    return text(
        an_object("NotificationEndpointSlack", "chat", "chat", url=HOOK + path),
        an_object(
            "NotificationEndpointHTTP", "hook", "hook", url=f"https://h/?a=1&api_key={path}", method="GET", type="none"
        ),
        an_object("Task", "task", "task", every="1h", query=f'import "http"\nhttp.post(url: "{HOOK}{path}")\n'),
    )


def written(folder: Path, path: str) -> str:
    file = folder / "package.json"
    file.write_text(package(path))
    return str(file)


async def test_no_output_has_a_credential(services: Cluster, env: Mapping[str, str], tmp_path: Path) -> None:
    shown: list[str] = []

    async def run(*arguments: str, code: int = 0) -> Ended:
        ended = await pkger(*arguments, env=env)
        assert ended.code == code, ended.err
        assert not [path for path in (FIRST, SECOND, LIVE) if path in ended.out + ended.err], arguments
        shown.append(ended.out)
        return ended

    file, outputs = written(tmp_path, FIRST), (("-o", "text"), ("-o", "json"))
    for output in outputs:
        await run("validate", "-f", file, *output)
        await run("plan", "-f", file, "--stack", "s", "--full", *output)
    await run("apply", "-f", file, "--stack", "s", "--yes")
    written(tmp_path, SECOND)
    for output in outputs:
        await run("plan", "-f", file, "--stack", "s", "--full", *output)
    changed = (await run("plan", "-f", file, "--stack", "s", "--full")).err + shown[-1]
    assert f"{HOOK}(hidden)" in changed
    assert f"{HOOK}(changed)" in changed
    assert "api_key=(changed)" in changed
    await run("plan", "-f", file, "--stack", "s", "--out", str(tmp_path / "plan"))
    await run("apply", "--plan", str(tmp_path / "plan"), "--yes", "-o", "json")
    [plan, *_] = json.loads((await run("plans", "list", "-o", "json")).out)
    for output in outputs:
        await run("plans", "show", plan["id"], *output)
        await run("stacks", "show", "s", *output)
        await run("stacks", "history", "s", *output)
        difference = await run("stacks", "diff", "s", "1", "2", *output)
        assert "(changed)" in difference.out
    chat = next(each for each in await services.resources() if each.kind == "NotificationEndpointSlack")
    assert json.loads(chat.spec_json)["url"] == HOOK + SECOND
    await services.mutate(update(chat.kind, chat.id, {**json.loads(chat.spec_json), "url": HOOK + LIVE}))
    for output in outputs:
        drift = await run("stacks", "drift", "s", "--all", "--full", *output)
        assert "(changed)" in drift.out
        await run("plan", "-f", file, "--stack", "s", *output)
    await run("stacks", "rollback", "s", "1", "--yes")
    chat = next(each for each in await services.resources() if each.kind == chat.kind)
    assert json.loads(chat.spec_json)["url"] == HOOK + FIRST
    await run("stacks", "uninstall", "s", "--yes")


async def test_a_changed_credential_is_a_change(services: Cluster) -> None:
    plans = [(await services.plan(package(path), stack="s")).header.digest for path in (FIRST, SECOND, FIRST)]
    assert plans[0] == plans[2] != plans[1]


async def test_a_message_of_a_platform_is_masked(services: Cluster, env: Mapping[str, str], tmp_path: Path) -> None:
    """Another writer's address, in the message of a step that finds it."""
    await services.apply(package(FIRST), stack="s")
    shared = await pkger("apply", "-f", written(tmp_path, SECOND), "--stack", "t", "--yes", env=env)
    assert shared.code
    assert "(changed)" in shared.err
    assert FIRST not in shared.err
    assert SECOND not in shared.err


async def test_an_export_holds_the_address_and_warns(services: Cluster, env: Mapping[str, str]) -> None:
    await services.apply(package(FIRST), stack="s")
    ended = await pkger("export", "--stack", "s", env=env)
    assert ended.out.count(FIRST) == 3
    assert FIRST not in ended.err
    assert "NotificationEndpointSlack 'chat': the package holds a credential as text, in an address in url" in ended.err
    assert "in an address in query" in ended.err
    assert "credential" not in (await pkger("export", "--kind", "Label", env=env)).err


async def test_a_live_url_with_a_password_is_masked_and_not_exported(
    services: Cluster, env: Mapping[str, str], tmp_path: Path
) -> None:
    await services.apply(package(FIRST), stack="s")
    hook = next(each for each in await services.resources() if each.kind == "NotificationEndpointHTTP")
    await services.mutate(
        update(hook.kind, hook.id, {**json.loads(hook.spec_json), "url": f"https://me:{LIVE[-5:]}@h/"})
    )
    drift = await pkger("stacks", "drift", "s", env=env)
    assert "https://(hidden)@h/" in drift.out.replace("(changed)", "(hidden)")
    plan = await pkger("plan", "-f", written(tmp_path, FIRST), "--stack", "s", env=env)
    export = await pkger("export", "--stack", "s", env=env)
    assert "NotificationEndpointHTTP" not in export.out
    assert "'hook': it breaks a rule of packages (spec.url: url must hold no user" in export.err
    assert LIVE[-5:] not in "".join(each.out + each.err for each in (drift, plan, export))


async def test_a_user_in_a_url_is_a_violation_that_shows_no_password(env: Mapping[str, str], tmp_path: Path) -> None:
    for address in ("https://me:pass-w0rd@example.com", "//me:pass-w0rd@h/x", "https://me:pass-w0rd/@h", ":pass-w0rd"):
        chat = an_object("NotificationEndpointSlack", "chat", "chat", url=address)
        (tmp_path / "p.json").write_text(text(chat))
        for output in ("text", "json"):
            ended = await pkger("validate", "-f", str(tmp_path / "p.json"), "-o", output, env=env)
            assert ended.code == 1
            assert "pass-w0rd" not in ended.out + ended.err
            expected = "url-with-user" if "me:" in address and "/@" not in address else "url-invalid"
            assert expected in ended.out + ended.err


async def test_names_and_violations_show_no_credential(env: Mapping[str, str], tmp_path: Path) -> None:
    """A package may have an address in a name, too, or where a name is meant."""
    file = tmp_path / "package.json"
    for name in ("https://ann:alpha@h", "https://ann:beta@h"):
        file.write_text(text(an_object("Label", "site", name), an_object("Task", "t", name, every="1h", query="x")))
        for arguments in (
            ("plan", "-f", str(file), "--stack", "s", "--full"),
            ("plan", "-f", str(file), "--stack", "s", "-o", "json"),
            ("apply", "-f", str(file), "--stack", "s", "--yes"),
            ("resources",),
            ("resources", "-o", "json"),
        ):
            ended = await pkger(*arguments, env=env)
            assert ended.code == 0, ended.err
            assert "(hidden)" in ended.out + ended.err, arguments
            assert not {"alpha", "beta"} & set(re.split(r"\W", ended.out + ended.err)), (arguments, ended)
    file.write_text(text(an_object("Label", "https://ann:alpha@h", "x y"), an_object("Label", "b", "b c", colour=1)))
    for output in ("text", "json"):
        ended = await pkger("validate", "-f", str(file), "-o", output, env=env)
        assert ended.code == 1
        assert "https://(hidden)@h" in ended.out
        assert "alpha" not in re.split(r"\W", ended.out + ended.err)
