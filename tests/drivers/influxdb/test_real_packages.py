"""Packages on the stand-in: applied, applied again and exported without a write, uninstalled."""

from pathlib import Path

import pytest
from pkger.model.v1 import operation_pb2

from services.core.errors import ContentRefused
from tests.cluster import Cluster
from tests.corpora import REFUSED_BY_INFLUXDB, package_parameters, package_text
from tests.drivers.influxdb.lives import contents
from tests.drivers.influxdb.test_keeping import asked
from tests.influx.server import Influx

NOTE = {"shape": "chronograf-v2", "type": "markdown", "note": "theirs"}

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED


THEIRS = 4
"""Number of resources that exist before."""


async def make_unowned(server: Influx) -> None:
    """Create resources in the organization that no stack owns."""
    org = server.state.org_by_name("default")
    assert org
    in_org = {"orgID": org["id"]}
    label = (await asked(server, "POST", "labels", {**in_org, "name": "theirs"}))["label"]
    bucket = await asked(server, "POST", "buckets", {**in_org, "name": "theirs"})
    await asked(server, "POST", f"buckets/{bucket['id']}/labels", {"labelID": label["id"]})
    cells = [{"x": 0, "y": 0, "w": 4, "h": 4, "name": "c", "properties": {"properties": NOTE}}]
    await asked(server, "POST", "dashboards", {**in_org, "name": "theirs", "cells": cells})
    task = 'option task = {name: "theirs", every: 1h}\n\nx()'
    await asked(server, "POST", "tasks", {**in_org, "flux": task})


@pytest.mark.parametrize("path", package_parameters(without=REFUSED_BY_INFLUXDB))
async def test_a_package_lives_its_whole_life(path: Path, server: Influx, on_influxdb: Cluster) -> None:
    package = package_text(path)
    await make_unowned(server)
    before = contents(server.state, "default")
    applied = await on_influxdb.apply(package, stack="s")
    assert applied.state == SUCCEEDED, applied.cause
    assert len(await on_influxdb.resources()) == applied.counts.creates + THEIRS > THEIRS

    server.records.clear()
    assert (await on_influxdb.apply(package, stack="s")).no_change
    export = await on_influxdb.export(stack="s")
    assert (await on_influxdb.apply(export.text, stack="s")).no_change
    assert server.records.count("write") == 0

    assert (await on_influxdb.uninstall("s")).state == SUCCEEDED
    assert contents(server.state, "default") == before


async def test_a_package_that_influxdb_lacks_words_for_is_refused_as_a_whole(
    server: Influx, on_influxdb: Cluster
) -> None:
    before = contents(server.state, "default")
    with pytest.raises(ContentRefused, match="rejects 5 objects; nothing was written"):
        await on_influxdb.apply(package_text(REFUSED_BY_INFLUXDB), stack="s")
    assert contents(server.state, "default") == before
