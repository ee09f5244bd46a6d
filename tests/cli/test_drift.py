"""``pkger stacks drift``: its text output, as golden files, and its exit status."""

import json
import re
from pathlib import Path

import pytest
from pkger.model.v1 import drift_pb2

from services.views.cutting import cut
from services.views.drift import side_groups
from tests.apply.packages import an_object, text
from tests.cli.command import Ended, at_terminal, environment, pkger
from tests.cluster import Cluster
from tests.drivers.client import create, delete, update

GOLDEN = Path(__file__).with_name("golden") / "drift"

QUERY = 'from(bucket: "a")\n  |> range(start: -1h)\n  |> mean()'
LONG = " ".join(f"word{number}" for number in range(40))
PACKAGE = text(
    an_object("Label", "l", "sensors"),
    an_object("Bucket", "b", "raw", ["l"], description=LONG),
    an_object("Task", "roll", "roll", every="1h", query=QUERY),
    an_object("Variable", "region", "region", type="constant", values=["eu", "us"]),
    an_object("Dashboard", "odd", "odd \u202e name"),
)

CASES = {
    "all": [],
    "keys": ["Bucket:b", "Label"],
    "everything": ["--all", "--full"],
    "json": ["Bucket", "-o", "json"],
    "detailed": ["Label", "--detailed-exitcode"],
    "detailed-none": ["Variable", "--detailed-exitcode"],
    "detailed-usage": ["--detailed-exitcode", "Bucket:"],
    "detailed-option": ["--detailed-exitcode", "--nothing"],
    "usage": [":b"],
    "unknown": ["Bucket:c", "Buckett"],
}


async def changed(services: Cluster) -> None:
    """A stack whose resources were changed outside pkger."""
    await services.apply(PACKAGE, stack="prod")
    found = {each.kind: each for each in await services.resources()}

    def edited(kind: str, **fields: object) -> None:
        mutations.append(update(kind, found[kind].id, {**json.loads(found[kind].spec_json), **fields}))

    mutations = [delete("Label", found["Label"].id), create("Label", {"name": "sensors"})]
    edited("Bucket", description=LONG.replace("word20", "other"))
    edited("Task", query=QUERY.replace("-1h", "-2h"), every="2h")
    edited("Dashboard", description="a\nb\u202e")
    for mutation in mutations:
        await services.mutate(mutation)


async def test_the_text_of_drift(services: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    await changed(services)
    env = environment(tmp_path, services.addresses)
    shown = {}
    for name, arguments in CASES.items():
        ended = await pkger("stacks", "drift", "prod", *arguments, env=env)
        shown[name] = f"$ pkger stacks drift prod {' '.join(arguments)}\n{_steady(ended)}"
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, printed in shown.items():
            (GOLDEN / f"{name}.txt").write_text(printed)
    assert shown == {name: (GOLDEN / f"{name}.txt").read_text() for name in CASES}


async def test_the_sides_have_colours_at_a_terminal(services: Cluster, tmp_path: Path) -> None:
    await changed(services)
    env = environment(tmp_path, services.addresses) | {"TERM": "xterm"}
    code, shown = await at_terminal("stacks", "drift", "prod", "Bucket", answers=[], env=env)
    assert code == 0
    assert b"\x1b[33mdrifted\x1b[0m Bucket b" in shown
    for option, variable in (("--no-color", {}), ("--quiet", {"NO_COLOR": "1"})):
        code, shown = await at_terminal("stacks", "drift", "prod", "Bucket", option, answers=[], env=env | variable)
        assert (code, b"\x1b[33m" in shown, b"drifted Bucket b" in shown) == (0, False, True)


async def test_without_drift_there_is_one_line(services: Cluster, tmp_path: Path) -> None:
    await services.apply(PACKAGE, stack="prod")
    env = environment(tmp_path, services.addresses)
    ended = await pkger("stacks", "drift", "prod", "--detailed-exitcode", env=env)
    assert ended == Ended(0, "No drift: 5 in sync.\n", "")


async def test_an_unknown_stack_is_reported_in_one_line(services: Cluster, tmp_path: Path) -> None:
    ended = await pkger("stacks", "drift", "none", env=environment(tmp_path, services.addresses))
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)


async def test_long_drift_is_cut_after_the_first_resources(services: Cluster, tmp_path: Path) -> None:
    await services.apply(text(*(an_object("Label", f"l{n:03}", f"l{n:03}") for n in range(201))), stack="prod")
    await services.mutate(*(delete("Label", each.id) for each in await services.resources()))
    ended = await pkger("stacks", "drift", "prod", env=environment(tmp_path, services.addresses))
    lines = ended.out.splitlines()
    assert (len(lines), lines[-2:]) == (52, ["… and 151 more; --full shows all", "Drift: 201 missing."])


def test_equal_sides_are_one_group() -> None:
    field = drift_pb2.DriftField(package_json="1", applied_json="2", live_json="1")
    assert [(group.names, group.text) for group in side_groups(field)] == [
        (("package", "live"), "1"),
        (("applied",), "2"),
    ]
    absent = side_groups(drift_pb2.DriftField(applied_json="2", package_json="2"))
    assert [(group.names, group.text) for group in absent] == [(("package", "applied"), "2"), (("live",), "absent")]


def test_long_sides_are_cut_where_they_differ() -> None:
    same = "x" * 100
    shown = cut([same + "a", same + "b", same], 20)
    assert len({*shown}) == 3
    assert all(len(each) <= 20 for each in shown)
    assert cut(["a", "b"], 20) == ["a", "b"]


def _steady(ended: Ended) -> str:
    """The output of a command, with ids numbered in the order of their first appearance."""
    ids: dict[str, str] = {}
    text = f"{ended.out}{ended.err}exit status {ended.code}\n"
    return re.sub(r"\b[0-9a-f]{16}\b", lambda found: ids.setdefault(found.group(), f"{len(ids) + 1:016d}"), text)
