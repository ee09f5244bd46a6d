"""Contexts, and the precedence of settings."""

import json
import stat
from pathlib import Path

from services.access.token_file import home_token
from tests.apply.packages import an_object, text
from tests.cli.command import environment, pkger
from tests.cluster import Cluster


async def test_contexts_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    env = environment(tmp_path)
    assert (await pkger("config", "use", "prod", env=env)).code == 1
    assert (
        await pkger(
            "config",
            "set",
            "prod",
            "--server",
            "example.com",
            "--target",
            "influx/main",
            "--token-file",
            "/secret",
            env=env,
        )
    ).code == 0
    assert (await pkger("config", "set", "lab", "--target", "embedded/lab", env=env)).code == 0
    assert (await pkger("config", "use", "prod", env=env)).code == 0
    listed = await pkger("config", "list", env=env)
    assert listed.out == (
        "   NAME  SERVER       TARGET        TOKEN FILE\n"
        "   lab                embedded/lab\n"
        "*  prod  example.com  influx/main   /secret\n"
    )
    assert stat.S_IMODE((tmp_path / "config.yml").stat().st_mode) == 0o600
    rows = json.loads((await pkger("config", "list", "-o", "json", env=env)).out)
    assert rows[1] == {
        "name": "prod",
        "current": True,
        "server": "example.com",
        "target": "influx/main",
        "token_file": "/secret",
    }


async def test_a_context_supplies_options_that_are_not_typed(services: Cluster, tmp_path: Path) -> None:
    """Addresses in the environment override the server of a context, and options override its target."""
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(text(an_object("Label", "l", "label")))
    await pkger("config", "set", "lab", "--server", "nowhere.invalid", "--target", "embedded/lab", env=env)
    await pkger("config", "use", "lab", env=env)
    assert (await pkger("apply", "-f", str(file), "--stack", "s", env=env)).code == 0
    assert (await pkger("apply", "-f", str(file), "--stack", "s", "--org", "other", env=env)).code == 0
    assert (await pkger("--target", "embedded/third", "apply", "-f", str(file), "--stack", "s", env=env)).code == 0
    listed = json.loads((await pkger("stacks", "list", "-o", "json", env=env)).out)
    assert sorted(each["target"]["org"] for each in listed) == ["lab", "other", "third"]
    shown = json.loads((await pkger("stacks", "list", "-o", "json", "--target", "embedded/other", env=env)).out)
    assert [each["target"]["org"] for each in shown] == ["other"]
    contradiction = await pkger("stacks", "show", "s", "--org", "a", "--target", "embedded/b", env=env)
    assert (contradiction.code, "contradicts" in contradiction.err) == (2, True)


async def test_the_server_option_overrides_addresses_in_the_environment(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    assert (await pkger("stacks", "list", env=env)).code == 0
    away = await pkger("stacks", "list", "--server", "pkger.invalid", "--timeout", "2", env=env)
    assert "Error: --timeout 2 is over: the stack service at " in away.err
    assert away.code == 1
    assert "pkger.invalid:50054" in away.err


async def test_a_token_in_place_of_its_file_is_refused_and_not_kept(tmp_path: Path) -> None:
    token = home_token(tmp_path).token()
    end = await pkger("config", "set", "prod", "--token-file", token, env=environment(tmp_path))
    assert end.code == 2
    assert token not in end.err
    assert not (tmp_path / "config.yml").exists()


async def test_a_broken_config_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.yml").write_text("contexts: [a]\n")
    ended = await pkger("stacks", "list", env=environment(tmp_path))
    assert (ended.code, "Traceback" in ended.err) == (2, False)
    assert "contexts must map names to server, target and token_file" in ended.err


async def test_the_command_prints_its_version_and_completion(tmp_path: Path) -> None:
    env = environment(tmp_path)
    assert (await pkger("version", env=env)).out.startswith("pkger ")
    assert set(json.loads((await pkger("version", "-o", "json", env=env)).out)) == {"pkger", "python"}
    for shell in ("bash", "zsh", "fish"):
        assert "_PKGER_COMPLETE" in (await pkger("completion", shell, env=env)).out
