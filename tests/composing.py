"""A planner that composes the packages of a text, and such texts. Nothing else of the services differs."""

import json
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any
from unittest.mock import patch

from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2

import planner_svc.__main__ as planner
from planner_svc.composition.compose import compose
from planner_svc.composition.full_names import source_name
from planner_svc.composition.model import Component, Composition, CompositionProblems
from planner_svc.inputs import BaseState, PlanInputs
from services.core.errors import SharedDiffers
from services.core.model import Package
from services.rpc.channel import Connect, grpc_channel
from services.rpc.convert.manifests import package_reference_from_pb
from services.rpc.convert.objects import object_from_pb, objects_to_pb, violation_to_pb
from services.rpc.parsed_package import ParsedPackage, parse_package
from services.rpc.process import Service, run_process
from services.settings import Settings
from services.system import Ids, MachineIds


def a_package(name: str, *objects: dict[str, Any], requires: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A manifest with the objects of its package; a text may have those of several packages."""
    spec = {"version": "1.0.0", "requires": [{"name": each} for each in requires]}
    return [{"apiVersion": "pkger/v1", "kind": "Package", "metadata": {"name": name}, "spec": spec}, *objects]


class ComposingInputs(PlanInputs):
    """Composes the packages of sources that begin with a manifest; each has all objects up to the next one."""

    _planned: ContextVar[stack_pb2.Stack] = ContextVar("stack")
    """The stack of the plan that this task makes."""

    def base_state(self, header: stack_pb2.Stack) -> Coroutine[Any, Any, BaseState]:
        self._planned.set(header)
        return super().base_state(header)

    async def package(self, sources: planner_pb2.PackageSources, urls: Sequence[str] = ()) -> ParsedPackage:
        packages = [package for source in sources.sources for package in _packages(source.text)]
        if not packages:
            return await super().package(sources, urls)
        parsed = [await self._parsed(objects, sources.env_json) for objects in packages]
        whole = ParsedPackage(violations=[violation for each in parsed for violation in each.violations])
        if whole.violations:
            return whole
        stack = await self.record(self._planned.get())
        traits = await self.traits(stack.target)
        composition = compose([*map(_component, parsed)], traits, [entry.key for entry in stack.resources])
        match composition:
            case CompositionProblems(violations=(), differing=differing):
                raise SharedDiffers([*map(str, differing)])
            case CompositionProblems(violations=violations):
                whole.violations += map(violation_to_pb, violations)
            case Composition(package=Package(objects, names)):
                whole.header.sources.extend(names)
                whole.objects += objects_to_pb(objects).objects
                whole.missing_secrets = sorted({key for each in parsed for key in each.missing_secrets})
        return whole

    async def _parsed(self, objects: Sequence[dict[str, Any]], env_json: Any) -> ParsedPackage:
        name = source_name(objects[0]["metadata"]["name"], objects[0]["spec"]["version"], "package.json")
        source = parser_pb2.Source(name=name, text=json.dumps(objects), encoding=parser_pb2.ENCODING_JSON)
        view = (parser_pb2.PACKAGE_VIEW_OBJECTS,)
        request = parser_pb2.ParsePackageRequest(sources=[source], env_json=env_json, view=view, allow_empty=True)
        return await parse_package(self._parser, request)


def _packages(source: str) -> Iterator[list[dict[str, Any]]]:
    package: list[dict[str, Any]] = []
    for item in json.loads(source):
        if item["kind"] == "Package":
            if package:
                yield package
            package = [item]
        elif package:
            package.append(item)
    if package:
        yield package


def _component(parsed: ParsedPackage) -> Component:
    manifest = parsed.manifest
    assert manifest
    return Component(
        manifest.name,
        Package(tuple(map(object_from_pb, parsed.objects)), tuple(parsed.header.sources)),
        frozenset(each.name for each in manifest.requires),
        tuple(map(package_reference_from_pb, parsed.package_references)),
    )


@asynccontextmanager
async def opened(
    settings: Settings, connect: Connect = grpc_channel, ids: Ids = MachineIds()
) -> AsyncIterator[Service]:
    """The planner, with another reader."""
    async with AsyncExitStack() as running:
        with patch.object(planner, "PlanInputs", ComposingInputs):
            service = await running.enter_async_context(planner.opened(settings, connect, ids))
        yield service


if __name__ == "__main__":
    run_process("planner", opened)
