"""The truth tables of resolution through ``CreatePlan``, with packages that earlier plans have installed."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pkger.model.v1.package_change_pb2 import PACKAGE_ORIGIN_DEPENDENCY, PACKAGE_ORIGIN_MANUAL

from tests.package_stacks.client import Client, Conflict, conflict_lines, plan_lines
from tests.packages.rows import case
from tests.packages.test_resolution_rows import CHOICES, INSTALLS, PUBLISHED, UNINSTALLS

_OPTIONS = {"prerelease": "prereleases"}
"""The fields of options whose names in recorded cases are others."""

LEFT_OUT = {
    "C14, by name": "the planner keeps a package by name only for its data",
    "data that is kept": "as above",
    "a platform": "the version of this server is no field of a request",
    "T44": "a requirement that was broken before",
    "T45": "as above",
    "T45, missing": "as above",
    "U08": "a cycle from before cycles were refused",
    "U09": "a requirement that was broken before",
}
"""Rows that no client can bring about, with the reason."""

RANGE_RECORDED = {"C17": ["!d"]}
"""Rows whose plan has one change more than the resolution, as the record gets the range that is requested."""

Row = tuple[Sequence[str], Sequence[str], str, Mapping[str, Any], Sequence[str]]


def _rows() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for name, (published, installed, request, lines) in INSTALLS.items():
        rows[name] = (published, installed, request or "install p@12.2.0", {}, lines)
    for name, (installed, names, lines) in UNINSTALLS.items():
        rows[name] = (PUBLISHED, installed, f"uninstall {names}", {}, lines)
    rows |= CHOICES
    return {name: row for name, row in rows.items() if name not in LEFT_OUT}


def _has_pins(row: Row) -> bool:
    return any(" pinned" in each or " suspended" in each for each in row[1])


# Packages cannot be pinned yet.
ROWS = {name: row for name, row in _rows().items() if not _has_pins(row)}


@pytest.mark.parametrize("row", ROWS)
async def test_rows(client: Client, row: str) -> None:
    published, installed, request, options, lines = ROWS[row]
    await install(client, installed)
    before = await client.state()
    await client.publish(*published)
    consent = {_OPTIONS.get(name, name): value for name, value in options.items()}
    try:
        answer = plan_lines(await client.plan(request, **consent))
    except Conflict as conflict:
        answer = conflict_lines(conflict.answer)
    assert answer == RANGE_RECORDED.get(row, list(lines))
    assert await client.state() == before


async def install(client: Client, installed: Sequence[str]) -> None:
    """Bring the packages about, each as in ``rows``: those that are ``auto`` come along, maybe with one that leaves."""
    packages = case((), installed, "install x")["installed"]
    if not packages:
        return
    required = {each["name"] for package in packages for each in package["requires"]}
    manual = [each for each in packages if each["origin"] == "manual"]
    unneeded = [each["name"] for each in packages if each not in manual and each["name"] not in required]
    helper = [f"helper 1.0.0 [{', '.join(unneeded)}]"] if unneeded else []
    await client.publish(*(each.partition(" wants")[0].removesuffix(" auto") for each in installed), *helper)
    words = [f"{each['name']}@{each['requested']}" if "requested" in each else each["name"] for each in manual]
    words += ["helper"] if helper else []
    await client.change(f"install {' '.join(words)}", prereleases=[each["name"] for each in packages])
    if helper:
        await client.change("uninstall helper", keep_unused=True)
    records = {each.name: (each.version, each.origin) for each in await client.installed()}
    origins = {"manual": PACKAGE_ORIGIN_MANUAL, "dependency": PACKAGE_ORIGIN_DEPENDENCY}
    assert records == {each["name"]: (each["version"], origins[each["origin"]]) for each in packages}
