"""``POST /api/v2/templates/export``: writes resources of any organizations that are served as a package."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.core.errors import KindUnsupported, ResourceNotFound
from services.gateway.answers import JSON_TYPE, Answer, Code
from services.gateway.documents.export import exported_object
from services.gateway.errors import Problem
from services.gateway.http_request import HttpRequest
from services.gateway.ids import id_of
from services.gateway.media_types import YAML_TYPES, wants_yaml
from services.gateway.organizations import Organization, Organizations
from services.gateway.requests.export import Export, NamedResource, WholeOrg, read_export
from services.gateway.resource_ids import native_ids
from services.gateway.services import Services
from services.gateway.stack_reading import StackReader
from services.gateway.threads import off_loop
from services.gateway.warnings import warning_headers
from services.kinds.registry import EXPORT_ORDER, family_of, kinds_meant
from services.packages.lifecycle import KIND as LIFECYCLE
from services.rpc.convert.objects import target_to_pb
from services.syntax.writer import JsonWriter, YamlWriter

log = logging.getLogger("pkger.http")

BODY_TYPES = ("", "application/json", *YAML_TYPES)
"""Media types of a body; without one, it is JSON."""

YAML_TYPE = "application/x-yaml; charset=utf-8"
"""Media type of a package as YAML."""


@dataclass(slots=True)
class _Part:
    """The resources that one call of the planner exports."""

    org: Organization
    stack_id: str = ""
    whole: WholeOrg | None = None
    named: list[NamedResource] = field(default_factory=list)

    def request(self) -> planner_pb2.ExportPackageRequest:
        request = planner_pb2.ExportPackageRequest(
            encoding=parser_pb2.ENCODING_JSON,
            resources=map(_message, self.named),
        )
        if self.stack_id:
            request.stack.id = self.stack_id
        else:
            request.target.CopyFrom(target_to_pb(self.org.target))
        if self.whole:
            labels = [label for label in self.whole.labels if label]
            request.everything.CopyFrom(planner_pb2.ExportFilter(kinds=self.whole.kinds, labels=labels))
        return request


@dataclass(slots=True)
class _Exported:
    """The result of a part: JSON text, and warnings about resources that are left out."""

    pieces: list[str] = field(default_factory=list)
    warnings: list[planner_pb2.ExportWarning] = field(default_factory=list)


class _NotInAnyOrg(Problem):
    """Some of the resources are in no organization that is served."""


class ExportRoutes:
    """The handler."""

    def __init__(self, services: Services, orgs: Organizations, stacks: StackReader) -> None:
        self._planner, self._orgs, self._stacks = services.planner, orgs, stacks

    async def export(self, request: HttpRequest) -> Answer:
        """Write the resources that the body names as a package."""
        if request.media_type not in BODY_TYPES:
            message = f"Content-Type: {request.media_type[:100]!r} is not supported; send application/json"
            raise Problem(Code.UNSUPPORTED_MEDIA_TYPE, message)
        export = read_export(await request.body(), request.media_type)
        export, exported = await self._gathered(export)
        warnings = [warning for each in exported for warning in each.warnings]
        is_yaml = wants_yaml(request.headers.get("Accept", ""))
        pieces = [each.pieces for each in exported]
        size = sum(len(piece) for each in pieces for piece in each)
        body = await off_loop(size, _written, pieces, export.resources, warnings, is_yaml)
        for warning in warnings:
            log.info("left out of an export", extra={"warning": warning.text})
        headers = warning_headers([warning.text for warning in warnings])
        return Answer(200, body, headers, YAML_TYPE if is_yaml else JSON_TYPE)

    async def _gathered(self, export: Export) -> tuple[Export, list[_Exported]]:
        """
        Export all parts.

        If a resource is not found, its id is looked up among the ids that answers show in another form
        (``native_ids``), and the export is repeated.

        Returns:
            The request, with the ids of the platform, and the result of each part.

        Raises:
            Problem: A resource is not found, or its id is invalid.
        """
        try:
            return export, await self._exported_parts(export)
        except (ResourceNotFound, _NotInAnyOrg):
            ids = (
                await native_ids(self._stacks, await self._orgs.all())
                if any(each.id for each in export.resources)
                else {}
            )
            native = replace(
                export, resources=[replace(each, id=ids.get(each.id, each.id)) for each in export.resources]
            )
            if list(native.resources) == list(export.resources):
                for each in export.resources:
                    if each.id:
                        id_of(each.id, "resources[].id")
                raise
        return native, await self._exported_parts(native)

    async def _exported_parts(self, export: Export) -> list[_Exported]:
        return await asyncio.gather(*map(self._exported, await self._parts(export)))

    async def _parts(self, export: Export) -> list[_Part]:
        """The calls that an export needs: one for each organization, and for each filter."""
        parts = [_Part(await self._orgs.of_id(whole.org_id), whole=whole) for whole in export.orgs]

        def part_of(org: Organization) -> _Part:
            if all(each.org != org for each in parts):
                parts.append(_Part(org))
            return next(each for each in parts if each.org == org)

        if export.stack_id:
            _, org = await self._stacks.stack(export.stack_id)
            part_of(org).stack_id = export.stack_id
        for org, named in await self._located(export.resources):
            part_of(org).named += named
        return parts

    async def _located(self, resources: Sequence[NamedResource]) -> list[tuple[Organization, list[NamedResource]]]:
        """
        Find the organization of each resource, which a request does not name.

        Raises:
            Problem: Some resources are in no organization.
        """
        if not resources:
            return []
        orgs = await self._orgs.all()
        if len(orgs) == 1:
            # The export itself reports a missing resource.
            return [(orgs[0], list(resources))]
        present = await asyncio.gather(*(self._present_in(org, resources) for org in orgs))
        missing = [str(each) for each in resources if not any(each in there for there in present)]
        if missing:
            raise _NotInAnyOrg(Code.NOT_FOUND, f"no organization has {'; '.join(missing[:20])}")
        return [(org, there) for org, there in zip(orgs, present, strict=True) if there]

    async def _present_in(self, org: Organization, resources: Sequence[NamedResource]) -> list[NamedResource]:
        """The resources out of *resources* that an organization has."""
        try:
            await self._exported(_Part(org, named=list(resources)))
        except (ResourceNotFound, KindUnsupported) as error:
            # Most organizations have none of the resources, so one call is enough for them.
            if len(resources) == 1 or error.metadata.get("count") == str(len(resources)):
                return []
            half = len(resources) // 2
            return [*await self._present_in(org, resources[:half]), *await self._present_in(org, resources[half:])]
        return list(resources)

    async def _exported(self, part: _Part) -> _Exported:
        exported, stub = _Exported(), PlannerServiceStub(self._planner.channel)
        async for message in self._planner.stream(stub.ExportPackage, part.request()):
            exported.pieces.append(message.text)
            exported.warnings += message.warnings.warnings
        return exported


def _message(named: NamedResource) -> planner_pb2.NamedResource:
    message = planner_pb2.NamedResource(kind=named.kind, new_name=named.new_name)
    if named.id and named.name:
        message.id_or_name = named.name
    elif named.id:
        message.id = named.id
    else:
        message.name = named.name
    return message


def _written(
    parts: Sequence[Sequence[str]],
    resources: Sequence[NamedResource],
    warnings: Sequence[planner_pb2.ExportWarning],
    is_yaml: bool,
) -> bytes:
    """
    The text of the package of all parts.

    Raises:
        Problem: A resource that the request names was left out, or two objects have one name.
    """
    named = [each for each in warnings if _is_asked_for(each, resources)]
    written_parts = [orjson.loads("".join(part)) for part in parts]
    # At most the part of a stack has one.
    lifecycles = [each for part in written_parts for each in part if each["kind"] == LIFECYCLE]
    objects = [[each for each in part if each["kind"] != LIFECYCLE] for part in written_parts]
    documents = list(map(exported_object, _joined(objects)))
    written = {(document["kind"], document["spec"].get("name")) for document in documents}
    for warning in named:
        if (warning.resource.kind, warning.display_name) not in written:
            raise Problem(Code.UNPROCESSABLE_ENTITY, warning.text)
    writer = YamlWriter() if is_yaml else JsonWriter()
    return writer.joined([writer.document(document) for document in (*lifecycles, *documents)]).encode()


def _joined(parts: Iterable[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """
    The objects of all parts in the order of exports, each once.

    Raises:
        Problem: Two of them have one name.
    """
    by_name: dict[tuple[str, str], dict[str, Any]] = {}
    for document in (each for part in parts for each in part):
        kind, name = document["kind"], document["metadata"]["name"]
        other = by_name.setdefault((family_of(kind), name), document)
        if other != document:
            message = f"two organizations have a {kind} that is named {name}; export one organization at a time"
            raise Problem(Code.UNPROCESSABLE_ENTITY, message)
    return sorted(by_name.values(), key=lambda each: (EXPORT_ORDER.get(each["kind"], 99), each["metadata"]["name"]))


def _is_asked_for(warning: planner_pb2.ExportWarning, resources: Sequence[NamedResource]) -> bool:
    """Whether a warning is about a resource that a request names."""
    resource: object_pb2.ResourceId = warning.resource
    return any(
        resource.kind in kinds_meant(each.kind) and (resource.id == each.id or warning.display_name == each.name)
        for each in resources
        if resource.id
    )
