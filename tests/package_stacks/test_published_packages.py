"""The packages of the corpora, each given a manifest, in one package stack."""

import random
import re
from collections import defaultdict
from pathlib import Path

import pytest
import yaml
from pkger.planner.v1 import package_pb2

from services.core.errors import SharedDiffers
from tests import needs
from tests.applier.drifting import drift
from tests.applier.history import check_history, package_of
from tests.applier.world import SUCCEEDED
from tests.corpora import own_packages, package_text, recorded_packages
from tests.package_stacks.client import Client


def a_folder(name: str, path: Path) -> package_pb2.PackageChange:
    """The installation of a folder with the package at *path* as a file beside the manifest."""
    content = package_text(path)
    file = "objects.json" if content.startswith(("[", "{")) else "objects.yaml"
    manifest = {
        "apiVersion": "pkger/v1",
        "kind": "Package",
        "metadata": {"name": name},
        "spec": {"version": "1.0.0", "files": [file]},
    }
    files = [
        package_pb2.PackageFile(path="package.yaml", text=yaml.safe_dump(manifest)),
        package_pb2.PackageFile(path=file, text=content),
    ]
    return package_pb2.PackageChange(folder=package_pb2.PackageFolder(files=files))


def packages() -> dict[str, Path]:
    """The packages by names of their own."""
    paths = [*own_packages(), *recorded_packages()]
    named: defaultdict[str, list[Path]] = defaultdict(list)
    for path in paths:
        named[re.sub("[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:50]].append(path)
    return {
        f"{name}-{number}" if number else name: path for name, some in named.items() for number, path in enumerate(some)
    }


@pytest.mark.slow
@needs.shared(needs.SHARED / "golden" / "parse" / "packages")
@pytest.mark.parametrize("seed", [1, 2])
async def test_published_packages_live_together_and_leave_nothing(client: Client, seed: int) -> None:
    """
    Those with equal objects share them; others are refused, with the names of both packages.

    They are installed one by one and leave in another order.
    """
    chance = random.Random(seed)
    every = packages()
    names = chance.sample(sorted(every), len(every))
    installed, refused = list[str](), dict[str, str]()
    for name in names:
        try:
            plan = await client.plan(a_folder(name, every[name]))
        except SharedDiffers as differs:
            refused[name] = str(differs)
            continue
        finished = await client.run(plan)
        assert (finished.state, finished.leftover_count) == (SUCCEEDED, 0), finished
        installed.append(name)
    assert refused
    for name, sentence in refused.items():
        assert any(f"'{name}." in sentence and f"'{other}." in sentence for other in installed), sentence
    assert sorted(await client.versions()) == sorted(installed)
    await check_history(client.case)
    assert (await drift(client.case)).differences == {}
    declared = {
        declaration.name.partition(".")[0]
        for item in (await package_of(client.case, len(installed))).shared
        for declaration in item.declarations
    }
    assert len(declared) > 1
    ids = set((await client.ids()).values())
    for name in chance.sample(installed, len(installed)):
        await client.change(f"uninstall {name}")
        left = set((await client.ids()).values())
        # What others share with it stays, with its id.
        assert left <= ids
        assert {each.id for each in (await client.look()).resources} == left
        ids = left
        if name in declared:
            await check_history(client.case)
            assert (await drift(client.case)).differences == {}
    snapshot = await client.look()
    assert (snapshot.content, await client.installed(), ids) == ([], [], set())
    for name in refused:
        await client.change(a_folder(name, every[name]))
        await client.change(f"uninstall {name}")
    assert (await client.look()).content == []
