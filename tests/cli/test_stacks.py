"""``pkger stacks``: made, listed, shown, changed and removed, by name and by id; as golden files."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

import parser_svc.__main__ as parser
from services.rpc.process import Service
from services.settings import Settings
from tests.apply.packages import an_endpoint, text
from tests.cli.command import at_terminal, ended, environment, pkger, started
from tests.cluster import Cluster, cluster
from tests.web import Web, serving

GOLDEN = Path(__file__).with_name("golden") / "stacks"

BUCKET = "apiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata: {name: raw}\nspec: {name: raw}\n"

CASES: dict[str, list[str]] = {
    "init": ["init", "api-prod", "--url", "URL/raw.yml", "--description", "of the API"],
    "init-taken": ["init", "api-prod", "--org", "default", "--url", "URL/raw.yml"],
    "init-nameless": ["init", "--url", "URL/raw.yml", "-o", "json"],
    "init-no-url": ["init", "other", "--url", "raw.yml"],
    "init-program": ["init", "other", "--url", "URL/raw.jsonnet"],
    "init-no-name": ["init", "a\nb"],
    "init-empty-name": ["init", ""],
    "init-empty-org": ["init", "other", "--org", ""],
    "init-no-org": ["init", "other", "--org", "a\nb"],
    "init-no-platform": ["init", "other", "--platform", "nope"],
    "list-pattern": ["list", "api-*"],
    "list-nothing": ["list", "--name", "none", "--id", "0000", "-o", "json"],
    "list-target": ["list", "--org", "default"],
    "update": ["update", "api-prod", "--name", "api", "--description", "", "--no-urls"],
    "update-nothing": ["update", "api"],
    "update-changed": ["update", "api", "--description", "x", "--etag", "0"],
    "update-contradiction": ["update", "api", "--url", "URL/raw.yml", "--no-urls"],
    "update-nameless": ["update", "ID", "--description", "x"],
    "show-nameless": ["show", "ID"],
    "show-json": ["show", "ID", "-o", "json"],
    "delete": ["delete", "api", "--yes"],
    "init-policy": ["init", "guarded", "--url", "URL/raw.yml", "--policy", "policy.yml", "-o", "json"],
    "init-no-policy": ["init", "other", "--policy", "nopolicy.yml"],
}
"""Commands in the order in which they run, on one store; ID is the id of the stack without a name, URL a web server."""


def fetching_parser(settings: Settings) -> AbstractAsyncContextManager[Service]:
    """A parser that fetches from this machine."""
    return parser.opened(replace(settings, allow_private_addresses=True))


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with serving({"/raw.yml": BUCKET}) as server:
        yield server


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, {"parser": fetching_parser}) as running:
        yield running


async def test_the_output_of_stack_commands(
    services: Cluster, web: Web, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    env = environment(tmp_path, services.addresses)
    meant: dict[str, str] = {}
    for name, content in {"policy.yml": "protect: true\nhistory: 5\n", "nopolicy.yml": "protcet: true\n"}.items():
        meant[name] = str(tmp_path / name)
        (tmp_path / name).write_text(content)
    transcripts: dict[str, str] = {}
    for name, arguments in CASES.items():
        typed = [meant.get(word, word).replace("URL", web.address) for word in arguments]
        answer = await pkger("stacks", *typed, env=env)
        if name == "init-nameless":
            meant["ID"] = json.loads(answer.out)["id"]
        transcripts[name] = f"$ pkger stacks {' '.join(arguments)}\n{answer.out}{answer.err}exit status {answer.code}\n"
    steady = _steady(transcripts, web.address)
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, printed in steady.items():
            (GOLDEN / f"{name}.txt").write_text(printed)
    assert steady == {name: (GOLDEN / f"{name}.txt").read_text() for name in CASES}


def _steady(transcripts: dict[str, str], address: str) -> dict[str, str]:
    """The same texts with ids and etags numbered in the order of their first appearance, and fixed times."""
    ids: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return ids.setdefault(found.group(), f"{len(ids) + 1:016d}")

    steady = {}
    for name, printed in transcripts.items():
        timeless = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-01-01T00:00:00Z", printed)
        steady[name] = re.sub(r"\b[0-9a-f]{16}\b", number, timeless.replace(address, "http://web"))
    return steady


async def test_a_stack_without_a_name_is_applied_and_deleted_by_its_id(
    services: Cluster, web: Web, tmp_path: Path
) -> None:
    env = environment(tmp_path, services.addresses)
    made = await pkger("stacks", "init", "--url", f"{web.address}/raw.yml", "-o", "json", env=env)
    stack = json.loads(made.out)["id"]

    planned = await pkger("plan", "--stack", stack, env=env)
    assert (planned.code, '+ Bucket raw "raw"' in planned.out) == (0, True)
    applied = await pkger("apply", "--stack", stack, "--yes", env=env)
    assert applied.code == 0
    assert [resource.display_name for resource in await services.resources()] == ["raw"]

    code, shown = await at_terminal("stacks", "delete", stack, answers=[(b"Apply this plan?", b"y\n")], env=env)

    assert (code, f"stack {stack} is gone".encode() in shown) == (0, True)
    assert await services.resources() == []
    assert await services.stack_names() == []
    code, shown = await at_terminal("stacks", "delete", stack, answers=[], env=env)
    assert (code, f"there is no stack {stack}; nothing to delete".encode() in shown) == (0, True)


async def test_a_stack_with_something_protected_is_not_deleted(services: Cluster, tmp_path: Path) -> None:
    """The message and the exit status say that the stack still exists."""
    env = environment(tmp_path, services.addresses)
    package = tmp_path / "raw.yml"
    package.write_text(BUCKET)
    await pkger("apply", "-f", str(package), "--stack", "prod", env=env)
    await pkger("stacks", "policy", "prod", "--set", "protect=true", env=env)

    uninstalled = await pkger("stacks", "uninstall", "prod", "--yes", env=env)
    assert uninstalled.code == 0
    assert uninstalled.out.endswith("stack prod is kept, and still has 1 resource, which is protected\n")
    refused = await pkger("stacks", "delete", "prod", "--yes", env=env)
    assert (refused.code, await services.stack_names()) == (1, ["prod"])
    assert refused.err.startswith(
        "Error: stack prod is not deleted: it still has 1 resource, which is protected. To delete it,"
    )

    await pkger("stacks", "policy", "prod", "--set", "protect=", env=env)
    assert (await pkger("stacks", "delete", "prod", "--yes", env=env)).code == 1
    assert (await pkger("stacks", "delete", "prod", "--yes", env=env)).code == 0
    assert (await services.resources(), await services.stack_names()) == ([], [])


async def test_an_unknown_stack_without_files_is_called_by_its_name(services: Cluster, tmp_path: Path) -> None:
    refused = await pkger("apply", "--stack", "none-such", "--yes", env=environment(tmp_path, services.addresses))
    assert (refused.code, "stack 'none-such' has no URLs" in refused.err) == (1, True)


async def test_a_rollback_names_the_secrets_that_the_platform_lacks(services: Cluster, tmp_path: Path) -> None:
    """A rollback takes no values, so the hint names no option for them."""
    env = environment(tmp_path, services.addresses)
    package = tmp_path / "chat.json"
    package.write_text(text(an_endpoint("Slack", "chat", "chat")))
    await pkger("apply", "-f", str(package), "--stack", "prod", "--allow-missing", "--yes", env=env)
    for options in ([], ["--yes"]):
        refused = await pkger("stacks", "rollback", "prod", "1", *options, env=env)
        assert (refused.code, refused.err) == (
            1,
            "Error: revision 1 refers to secrets that the platform does not have: slack-token; write them with"
            " an apply of a package that refers to them, or set allow_missing (--allow-missing)\n",
        )


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf"])
async def test_an_invalid_wait_is_refused(tmp_path: Path, seconds: str) -> None:
    refused = await pkger("stacks", "uninstall", "prod", "--wait", seconds, env=environment(tmp_path))
    assert (refused.code, "write a number of seconds" in refused.err) == (2, True)


async def test_a_mistyped_kind_is_reported_with_a_suggestion(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    await pkger("stacks", "init", "prod", env=env)
    for command in (
        ["stacks", "import", "prod", "Buckett", "1"],
        ["stacks", "drift", "prod", "Buckett"],
        ["stacks", "forget", "prod", "Buckett:raw"],
        ["stacks", "rollback", "prod", "1", "--skip", "Buckett", "--yes"],
        ["schema", "Buckett"],
    ):
        refused = await pkger(*command, env=env)
        # The revision is checked first.
        message = "no revision 1" if "rollback" in command else "did you mean Bucket?"
        assert (refused.code, message in refused.err) == (1, True), refused.err


async def test_lists_of_one_organization(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    package = tmp_path / "raw.yml"
    package.write_text(BUCKET)
    for org in ("one", "two", "two"):
        await pkger("apply", "-f", str(package), "--stack", org, "--org", org, env=env)
    for collection in ("plans", "operations"):
        for options, orgs in (
            (["--org", "one"], ["one"]),
            (["--target", "embedded/two", "--limit", "1"], ["two"]),
            (["--org", "none"], []),
            ([], ["two", "two", "one"]),
        ):
            listed = await pkger(collection, "list", *options, "-o", "json", env=env)
            assert [each["target"]["org"] for each in json.loads(listed.out)] == orgs, (collection, options)


async def test_a_stack_without_urls_needs_files(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    await pkger("stacks", "init", "prod", env=env)

    refused = await pkger("apply", "--stack", "prod", "--yes", env=env)

    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert "has no URLs, so name at least one source" in refused.err
    without = await pkger("apply", "--yes", env=env)
    assert (without.code, "name at least one package file" in without.err) == (2, True)


async def test_a_stack_is_watched_until_it_is_gone(services: Cluster, web: Web, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    await pkger("stacks", "init", "prod", "--url", f"{web.address}/raw.yml", env=env)
    watching = await started("stacks", "watch", "prod", env=env)
    assert watching.stdout
    first = await watching.stdout.readline()
    await services.apply(stack="prod")
    await services.uninstall("prod")

    rest = await ended(watching)

    lines = [re.sub("[0-9a-f]{16}", "ID", line) for line in (first.decode() + rest.out).splitlines()]
    # Records between two reads are merged, so only the lines of operations are compared.
    assert [line for line in lines if line.startswith("operation ID")] == [
        "operation ID began: apply",
        "operation ID ended: succeeded",
        "operation ID began: uninstall",
        "operation ID ended: succeeded",
    ]
    assert (lines[0], lines[-1]) == ("stack prod: generation 0, 0 resources", "the stack is gone")
    assert (rest.code, rest.err) == (0, "")
    missing = await pkger("stacks", "watch", "prod", env=env)
    assert (missing.code, missing.err.count("\n")) == (1, 1)


async def test_an_id_of_another_target_is_refused(services: Cluster, tmp_path: Path) -> None:
    """The options say where, and an id belongs to one target: a command does not choose between them."""
    env = environment(tmp_path, services.addresses)
    package = tmp_path / "raw.yml"
    package.write_text(BUCKET)
    await pkger("apply", "-f", str(package), "--stack", "prod", "--org", "one", env=env)
    stack = (await services.record("prod", org="one")).id
    for command in (
        ("stacks", "show", stack),
        ("stacks", "drift", stack),
        ("plan", "-f", str(package), "--stack", stack),
        ("export", "--stack", stack),
    ):
        for options in ((), ("--org", "one"), ("--target", "embedded/one")):
            shown = await pkger(*command, *options, env=env)
            assert shown.code == 0, shown.err
        for options in (("--org", "two"), ("--platform", "lab"), ("--target", "embedded/two")):
            refused = await pkger(*command, *options, env=env)
            message = f"Error: stack {stack} is for embedded/one; use --target embedded/one\n"
            assert (refused.code, refused.err) == (1, message)


async def test_an_address_with_a_credential_in_its_query_is_warned_of(
    services: Cluster, web: Web, tmp_path: Path
) -> None:
    """Everybody who may read the stack sees the address; the warning itself does not repeat the credential."""
    env = environment(tmp_path, services.addresses)
    address = f"{web.address}/raw.yml?ref=main&access_token=canary&sig=canary"
    warning = (
        f"warning: {web.address}/raw.yml?ref=main&access_token=(hidden)&sig=(hidden): the query has the parameters"
        " 'access_token', 'sig', named like a credential, and stacks and plans show their addresses to everybody"
        " who may read them; use an address without credentials, or a local copy of the file\n"
    )
    assert (await pkger("stacks", "init", "prod", "--url", address, env=env)).err == warning
    assert (await pkger("stacks", "update", "prod", "--url", address, "-o", "json", env=env)).err == warning
    assert (await pkger("validate", address, env=env)).err == warning
    plain = f"{web.address}/raw.yml?ref=main"
    assert (await pkger("stacks", "update", "prod", "--url", plain, env=env)).err == ""
    assert (await pkger("validate", plain, env=env)).err == ""
