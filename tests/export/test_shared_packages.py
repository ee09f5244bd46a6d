"""Real packages, applied and exported: an apply of the export changes nothing."""

import pytest
from pkger.model.v1 import operation_pb2

from services.core.errors import SharedDiffers
from tests import needs
from tests.cluster import Cluster
from tests.export.test_export import ALL

FOLDER = needs.SHARED / "golden" / "parse" / "packages"
PARTS = pytest.mark.parametrize("part", [slice(1, None, 8), pytest.param(slice(None), marks=pytest.mark.slow)], ids=str)
"""Some packages, and all."""

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED


@needs.shared(FOLDER)
@pytest.mark.timeout(600)
@PARTS
async def test_each_comes_back_as_it_was(services: Cluster, part: slice) -> None:
    for path in sorted(FOLDER.glob("*.yml"))[part]:
        org = f"{services.org}-{path.stem}"
        assert (await services.apply(path.read_text(), stack="s", org=org)).state == SUCCEEDED
        export = await services.export(stack="s", org=org)
        assert export.warning_texts == []
        plan = await services.plan(export.text, stack="s", org=org)
        assert plan.no_change, path.name
        assert (await services.export(org=org, everything=ALL)).text == export.text
        blocks = export.text.count("query: |") + export.text.count("config: |")
        assert blocks == sum(map(_can_be_a_block, _scripts(export.objects))), path.name


def _can_be_a_block(text: str) -> bool:
    return "\n" in text and "\r" not in text


def _scripts(item: object) -> list[str]:
    """The queries and configurations in a document."""
    match item:
        case dict():
            own = [text for key, text in item.items() if key in ("query", "config") and isinstance(text, str)]
            return [*own, *(text for value in item.values() for text in _scripts(value))]
        case list():
            return [text for value in item for text in _scripts(value)]
        case _:
            return []


@needs.shared(FOLDER)
@pytest.mark.timeout(600)
@PARTS
async def test_all_of_them_together_come_back_from_one_target(services: Cluster, part: slice) -> None:
    applied = []
    packages = sorted(FOLDER.glob("*.yml"))[part]
    for path in packages:
        try:
            finished = await services.apply(path.read_text(), stack=path.stem)
        except SharedDiffers:
            continue
        assert finished.state == SUCCEEDED, finished.cause
        applied.append(path.stem)
    # A few of them declare a variable or label of one name with different content.
    assert len(applied) > 0.7 * len(packages)
    for stack in applied:
        # The export has labels that other stacks attached to shared resources; the record of this stack lacks them.
        assert (await services.plan((await services.export(stack=stack)).text, stack=stack)).steps == [], stack
    everything = await services.export(everything=ALL)
    assert everything.warning_texts == []
    copy = services.in_org(f"{services.org}-copy")
    assert (await copy.apply(everything.text, stack="copy")).state == SUCCEEDED
    assert (await copy.export(everything=ALL)).text == everything.text
