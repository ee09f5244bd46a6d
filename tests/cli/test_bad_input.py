"""Bad input gives a clear error without a traceback and exit status 1, and applies nothing in part."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import needs
from tests.apply.packages import LABEL, STEPS, an_object, text
from tests.cli.command import environment, installed, pkger
from tests.cluster import Calls, Cluster
from tests.samples import rare

LABEL_YAML = "apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata:\n  name: {}\n"


def _file(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def _missing(folder: Path) -> Path:
    return folder / "missing.yml"


def _large(folder: Path) -> Path:
    path = folder / "large.yml"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    return path


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(letter)}: &{chr(letter)} [{', '.join(['*' + chr(letter - 1)] * 9)}]\n"
    for letter in range(ord("b"), ord("k"))
)

CASES = {
    "not YAML": (_file("p.yml", "kind: [Label\nspec: }"), "p.yml:2"),
    "not JSON": (_file("p.json", "[{]"), "p.json:1"),
    "JSON that is not a list": (_file("p.json", "{}"), "p.json"),
    "Latin-1": (_file("p.yml", b"kind: Label\nname: caf\xe9\n"), "p.yml:2: is not UTF-8 text (byte 0xe9)"),
    "UTF-16": (_file("p.yml", "kind: Label\n".encode("utf-16")), "p.yml: is UTF-16 text; save it as UTF-8"),
    "binary": (_file("p.yml", b"\x00\x01\x02\x03"), "p.yml"),
    "a directory": (lambda folder: folder, "is a directory; name the files in it"),
    "a file that is not there": (_missing, "missing.yml: No such file or directory"),
    "100 MB": (_large, "large.yml: "),
    "100,000 levels": (_file("p.yml", "a: " + "[" * 100_000), "p.yml"),
    "100,000 levels of JSON": (_file("p.json", "[" * 100_000), "p.json"),
    "an alias bomb": (_file("p.yml", BOMB), "p.yml"),
    "an unknown kind": (_file("p.yml", LABEL_YAML.format("a").replace("Label", "Lable")), "p.yml:2:7: root[0].kind"),
    "an anchor that is not there": (_file("p.yml", "kind: *nobody"), "p.yml:1"),
    "a bad name": (_file("p.yml", LABEL_YAML.format("Not_Good")), "p.yml:4:9: root[0].metadata.name"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("verb", ["apply", "plan"])
async def test_a_bad_package_is_reported_and_nothing_is_written(
    verb: str, case: str, module_services: Cluster, calls: Calls, tmp_path: Path
) -> None:
    make, message = CASES[case]
    env = environment(tmp_path, module_services.addresses)
    ended = await pkger(verb, "-f", str(make(tmp_path)), "--stack", "s", env=env)
    assert ended.code == 1
    assert message in ended.err
    assert ended.err.startswith("Error: ")
    assert len(ended.err.splitlines()) <= 2
    assert "Traceback" not in ended.err + ended.out
    assert calls.count("Mutate") == 0
    assert await module_services.stack_names() == []


async def test_every_violation_of_a_package_is_reported_with_its_location(
    module_services: Cluster, tmp_path: Path
) -> None:
    one, other = tmp_path / "one.yml", tmp_path / "other.yml"
    one.write_text(
        LABEL_YAML.format("a") + "spec:\n  name: x\n---\n" + LABEL_YAML.format("b").replace("v2alpha1", "v1")
    )
    other.write_text("apiVersion: influxdata.com/v2alpha1\nkind: Task\nmetadata: {name: t}\nspec: {status: on}\n")
    ended = await pkger("plan", "-f", str(one), str(other), env=environment(tmp_path, module_services.addresses))
    assert ended.code == 1
    first, *lines = ended.err.splitlines()
    assert first == f"Error: the package breaks {len(lines)} rules; nothing was written"
    assert [line.split(": ")[:2] for line in lines] == [
        [f"{one}:6:9", "root[0].spec.name"],
        [f"{one}:8:13", "root[1].apiVersion"],
        [f"{other}:4:1", "root[2].spec.every"],
        [f"{other}:4:1", "root[2].spec.cron"],
        [f"{other}:4:1", "root[2].spec.query"],
        [f"{other}:4:16", "root[2].spec.status"],
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["apply"], "name at least one package file"),
        (["apply", "--frob"], "No such option"),
        (["frob"], "No such command"),
        (["plan", "-f", "x", "-o", "xml"], "'xml' is not one of"),
        (["plan", "-f", "x", "--env-ref", "novalue"], "write KEY=VALUE"),
        (["serve", "everything"], "is not one of"),
        (["stacks", "show"], "Missing argument"),
        (["stacks", "list", "--server", "localhost:50054"], "write the host without a port"),
    ],
)
async def test_wrong_usage_exits_with_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    ended = await (installed if arguments[0] == "serve" else pkger)(*arguments, env=environment(tmp_path))
    assert ended.code == 2
    assert message in ended.err


async def test_a_stack_that_does_not_exist_is_reported(module_services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, module_services.addresses)
    for arguments in (["stacks", "show", "nobody"], ["stacks", "uninstall", "nobody", "--yes"]):
        ended = await pkger(*arguments, env=env)
        message = "Error: there is no stack 'nobody'; ListStacks lists the stacks (`pkger stacks list`)\n"
        assert (ended.code, ended.out, ended.err) == (1, "", message)


@pytest.mark.parametrize("verb", ["plan", "apply"])
async def test_an_invalid_stack_name_is_reported_before_the_plan(
    verb: str, module_services: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "package.json"
    file.write_text(STEPS[1])
    env = environment(tmp_path, module_services.addresses)
    ended = await pkger(verb, "-f", str(file), "--stack", " x\n", env=env)
    message = "Error: stack.name: a stack's name is 1 to 200 printable characters without blanks at the ends\n"
    assert (ended.code, ended.out, ended.err) == (1, "", message)


async def test_a_home_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file")
    ended = await pkger("stacks", "list", env=environment(home))
    assert (ended.code, ended.err) == (
        1,
        f"Error: the folder {home} cannot be made, as a file has its name or that of a folder above it; use another one"
        " (PKGER_DATA, PKGER_HOME, PKGER_RUN)\n",
    )


@needs.root()
async def test_a_home_that_may_not_be_entered_is_reported(tmp_path: Path) -> None:
    """As after sudo to another user, which keeps HOME."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        if os.access(folder, os.W_OK) and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o001)
    os.seteuid(65534)
    try:
        end = await pkger("stacks", "list", env=environment(home))
    finally:
        os.seteuid(0)
    assert (end.code, end.out) == (1, "")
    assert end.err.startswith(f"Error: the folder {home}")
    assert len(end.err.splitlines()) == 1


@pytest.mark.slow
async def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "stack.db").write_text("not a database, but long enough to have a header of its own" * 10)
    ended = await pkger("stacks", "list", env=environment(tmp_path))
    message = (
        f"Error: the stack service cannot start: cannot use the database {tmp_path}/stack.db: file is not a database\n"
    )
    assert (ended.code, ended.err) == (1, message)


@pytest.mark.parametrize(
    ("down", "arguments"),
    [
        ("planner", ["apply", "-f", "FILE"]),
        rare("parser", ["apply", "-f", "FILE"]),
        ("platform", ["plan", "-f", "FILE"]),
        rare("stack", ["apply", "-f", "FILE", "--stack", "s"]),
        rare("applier", ["apply", "-f", "FILE"]),
        ("stack", ["stacks", "list"]),
    ],
)
@pytest.mark.slow
async def test_a_service_that_is_down_is_named(
    down: str, arguments: list[str], tmp_path: Path, short_path: Path
) -> None:
    from tests.cluster import cluster  # noqa: PLC0415

    file = tmp_path / "package.json"
    file.write_text(STEPS[1])
    nobody = f"unix:{short_path}/nobody.sock"
    async with cluster(tmp_path, given={down: nobody}) as services:
        env = environment(tmp_path, services.addresses)
        ended = await pkger(*[str(file) if word == "FILE" else word for word in arguments], env=env)
    assert ended.code == 1
    called = "platform 'embedded'" if down == "platform" else f"{down} service"
    assert (
        ended.err
        == f"Error: the {called} at {nobody} does not answer: no connection (check whether it runs, and its address)\n"
    )


async def test_a_rejection_of_the_platform_is_reported_and_rolled_back(older_services: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "package.json"
    file.write_text(text(LABEL, an_object("Bucket", "ok", "fine"), an_object("Bucket", "reserved", "_system")))
    ended = await pkger("apply", "-f", str(file), "--stack", "s", env=environment(tmp_path, older_services.addresses))
    assert ended.code == 5
    assert "create Bucket 'reserved'" in ended.err
    assert ended.err.endswith("all changes are undone\n")
    assert await older_services.resources() == []
    assert await older_services.stack_names() == []


async def test_content_that_the_platform_rejects_is_reported_by_object(
    module_services: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "p.yml"
    buckets = [f"{LABEL_YAML.format(name).replace('Label', 'Bucket')}spec: {{name: _{name}}}\n" for name in "ab"]
    file.write_text("---\n".join([LABEL_YAML.format("red"), *buckets]))
    env = environment(tmp_path, module_services.addresses)
    reason = "bucket names that start with an underscore are reserved for the system; choose a name other than"
    for arguments in (["plan"], ["apply", "--yes", "--stack", "s"]):
        ended = await pkger(*arguments, "-f", str(file), env=env)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.splitlines() == [
            "Error: platform 'embedded' rejects 2 objects; nothing was written",
            f"{file}:6:1: Bucket 'a': {reason} '_a'",
            f"{file}:12:1: Bucket 'b': {reason} '_b'",
        ]
    assert await module_services.stack_names() == []


async def test_a_refusal_of_an_apply_names_the_option_that_allows_it(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "p.yml"
    file.write_text(LABEL_YAML.format("a") + "spec: {name: {envRef: {key: region}}}\n")
    arguments = ["apply", "-f", str(file), "--stack", "s"]
    ended = await pkger(*arguments, env=env)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "Error: values are missing: environment values without a default: region;"
        " supply them in env and secrets, or set allow_missing (--env-ref, --secret, --allow-missing)\n"
    )
    assert (await pkger(*arguments, "--allow-missing", env=env)).code == 0
    file.write_text("")
    ended = await pkger(*arguments, env=env)
    assert (ended.code, ended.out) == (1, "")
    assert (
        "all 1 resources of stack 's' would be removed; set allow_empty to apply it anyway (--allow-empty)" in ended.err
    )
    assert (await pkger(*arguments, "--skip", "Label:a", env=env)).out.startswith("warning: the package has no objects")
    assert (await pkger(*arguments, "--skip", "Lable:a", env=env)).err.startswith(
        "Error: options.skip[0].kind: 'Lable' is no"
    )
    assert (await pkger(*arguments, "--allow-empty", "--yes", env=env)).code == 0
    assert await services.resources() == []
