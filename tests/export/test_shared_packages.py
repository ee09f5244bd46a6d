"""Packages, applied and exported: an apply of the export changes nothing."""

from pathlib import Path

import pytest
from pkger.model.v1 import operation_pb2

from services.core.errors import SharedDiffers
from tests.cluster import Cluster
from tests.corpora import corpus_parameters, package_text, packages_in
from tests.export.test_export import ALL

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED


@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.slow))
async def test_each_comes_back_as_it_was(services: Cluster, folder: Path) -> None:
    for path in packages_in(folder):
        org = f"{services.org}-{path.stem}"
        assert (await services.apply(package_text(path), stack="s", org=org)).state == SUCCEEDED
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


@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.faults))
async def test_all_of_them_together_come_back_from_one_target(services: Cluster, folder: Path) -> None:
    applied = []
    for path in packages_in(folder):
        try:
            finished = await services.apply(package_text(path), stack=path.stem)
        except SharedDiffers:
            continue
        assert finished.state == SUCCEEDED, finished.cause
        applied.append(path.stem)
    # A few of them declare a variable or label of one name with different content.
    assert len(applied) > 0.7 * len(packages_in(folder))
    for stack in applied:
        # The export has labels that other stacks attached to shared resources; the record of this stack lacks them.
        assert (await services.plan((await services.export(stack=stack)).text, stack=stack)).steps == [], stack
    everything = await services.export(everything=ALL)
    assert everything.warning_texts == []
    assert (await services.apply(everything.text, stack="copy", org="copy")).state == SUCCEEDED
    assert (await services.export(org="copy", everything=ALL)).text == everything.text
