"""Compares the gateway with recorded answers of InfluxDB, by the program that comes with the recordings."""

import argparse
import importlib.util
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

import parser_svc.__main__ as parser_process
import services.drivers.__main__ as platform_process
from services.core.masking import masked
from services.core.model import Target
from services.gateway.organizations import org_id
from services.platforms import Platform
from services.rpc.process import Opened, Service
from services.settings import Settings
from tests import needs
from tests.cluster import cluster
from tests.gateway.comparable import comparable
from tests.gateway.gateway import TOKEN, gateway, settings
from tests.influx.server import influx

FOLDER = needs.SHARED / "golden" / "service"

Scenario = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Servers:
    """
    The servers that a scenario runs against.

    Attributes:
        gateway: Address of the gateway.
        platform: Address of the platform; empty: it has no HTTP API.
        orgs: Ids and names of empty organizations; None: the platform creates them.
    """

    gateway: str
    platform: str
    orgs: Iterator[tuple[str, str]] | None


def load_compare() -> Any:
    """The program, which also ignores the differences that ``tests.gateway.comparable`` removes."""
    spec = importlib.util.spec_from_file_location("recorded_service_compare", FOLDER / "compare.py")
    assert spec
    assert spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    known = module.lenient
    module.__dict__["lenient"] = lambda body, step: comparable(known(body, step), step)
    return module


def read_scenarios(compare: ModuleType, *names: str) -> list[Scenario]:
    """The scenarios of files. In expected summaries and diffs, credentials in addresses are masked (docs/http.md)."""
    scenarios = [scenario for name in names for scenario in compare.read(FOLDER / name)]
    for step in (step for scenario in scenarios for step in scenario["steps"]):
        answer = step.get("expect", {}).get("body")
        if isinstance(answer, dict) and answer.keys() & {"summary", "diff"}:
            step["expect"]["body"] = orjson.loads(masked(orjson.dumps(answer).decode()))
    return scenarios


def needs_influxdb(scenario: Scenario) -> bool:
    """Whether a scenario needs a platform with an HTTP API."""
    return scenario.get("needs") == "influxdb" or any(step.get("on") == "platform" for step in scenario["steps"])


def played(compare: ModuleType, servers: Servers, scenario: Scenario) -> dict[int, list[str]]:
    """The differences of the answers in a scenario, by step."""
    options = argparse.Namespace(
        base_url=f"http://{servers.gateway}",
        token=TOKEN,
        platform=servers.platform,
        org=None,
        org_command=None,
        strict=False,
        record=False,
        hash=False,
    )
    packages = compare.Packages([FOLDER.parent / "parse" / "packages"])
    run = compare.Run(options, packages, compare.Files(packages))
    if servers.orgs is not None:
        # A method of the recorded program, whose spelling it is.
        run.organisation = partial(next, servers.orgs)
    return {number: found for number, found in run.play(scenario) if found}


@asynccontextmanager
async def on_embedded(folder: Path) -> AsyncIterator[Servers]:
    """The gateway in front of the embedded platform."""
    names = [f"golden-{number:02}" for number in range(40)]
    orgs = [(org_id(Target("embedded", name)), name) for name in names]
    served = settings(folder, PKGER_HTTP_ORGS=",".join(f"{name}=embedded/{name}" for name in names))
    async with cluster(folder, {"parser": _fetching_parser}) as running, gateway(served, running) as address:
        yield Servers(address, "", iter(orgs))


@asynccontextmanager
async def on_influxdb(folder: Path) -> AsyncIterator[Servers]:
    """The gateway in front of the stand-in for an InfluxDB server."""
    async with influx(token=TOKEN) as server:
        (folder / "token").write_text(server.token)
        options = {"url": server.url, "token_file": "token"}
        opened = partial(platform_process.opened, platform=Platform("embedded", "influxdb", "", options))
        served = settings(folder, PKGER_HTTP_ORGS="")
        replaced: dict[str, Opened] = {"parser": _fetching_parser, "platform": opened}
        async with cluster(folder, replaced) as running, gateway(served, running) as address:
            yield Servers(address, server.url, None)


@asynccontextmanager
async def _fetching_parser(settings: Settings) -> AsyncIterator[Service]:
    """A parser that may fetch packages from the program, which has a private address."""
    async with parser_process.opened(replace(settings, allow_private_addresses=True)) as service:
        yield service
