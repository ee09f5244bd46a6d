"""Reads the ``google.api.http`` annotations of the contracts (AIP-127), which map requests of HTTP to RPCs."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from google.api import annotations_pb2, http_pb2
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from pkger.applier.v1 import action_pb2, applier_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import package_pb2, planner_pb2
from pkger.stack.v1 import definition_pb2, repository_pb2, snapshot_pb2, stack_pb2

PUBLIC_SERVICES: tuple[ServiceDescriptor, ...] = (
    parser_pb2.DESCRIPTOR.services_by_name["ParserService"],
    planner_pb2.DESCRIPTOR.services_by_name["PlannerService"],
    package_pb2.DESCRIPTOR.services_by_name["PackageService"],
    applier_pb2.DESCRIPTOR.services_by_name["ApplierService"],
    stack_pb2.DESCRIPTOR.services_by_name["StackService"],
    repository_pb2.DESCRIPTOR.services_by_name["RepositoryService"],
    definition_pb2.DESCRIPTOR.services_by_name["DefinitionService"],
    action_pb2.DESCRIPTOR.services_by_name["ActionService"],
    snapshot_pb2.DESCRIPTOR.services_by_name["SnapshotService"],
)
"""The services whose RPCs are public; only services call those of journals and drivers."""

_PARAMETER = re.compile(r"\{([^{}]*)\}")

_FIELD = re.compile(r"[\w.]+")
"""The supported form of a parameter: a field, without a pattern such as ``plans/*``."""


class AnnotationInvalid(Exception):
    """An annotation is missing, or is not supported."""


@dataclass(frozen=True, slots=True)
class PathParameter:
    """
    A segment of a path that fills a field.

    Attributes:
        field: The field, with dots, such as ``stack.id``.
    """

    field: str

    @property
    def name(self) -> str:
        """Its name in a route, in which dots are not allowed."""
        return self.field.replace(".", "_")


@dataclass(frozen=True, slots=True)
class Binding:
    """
    One way to call an RPC.

    Attributes:
        rpc: The RPC.
        method: Method of HTTP.
        path: Path of the route; ``{name}`` matches one segment.
        parameters: The parameters of the path, in its order.
        has_body: Whether the body has all other fields; else the query has them.
        number: Position among the bindings of the RPC; the docs show binding 0.
    """

    rpc: MethodDescriptor
    method: str
    path: str
    parameters: tuple[PathParameter, ...]
    has_body: bool
    number: int

    @property
    def name(self) -> str:
        """A unique name."""
        name = f"{self.rpc.containing_service.name}_{self.rpc.name}"
        return f"{name}_{self.number + 1}" if self.number else name

    @property
    def is_safe(self) -> bool:
        """Whether the RPC has no side effects."""
        return bool(self.rpc.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS)

    @property
    def follows(self) -> bool:
        """Whether the RPC streams events as they occur, so that another call can resume the stream."""
        fields = self.rpc.input_type.fields_by_name
        return bool(self.rpc.server_streaming) and ("after_seq" in fields or "position" in fields)


def bindings(services: Iterable[ServiceDescriptor] = PUBLIC_SERVICES) -> list[Binding]:
    """
    All ways to call the RPCs of *services*, in the order of the contracts.

    Raises:
        AnnotationInvalid: An RPC has no annotation, or one that is not supported.
    """
    return [binding for service in services for rpc in service.methods for binding in _bindings_of(rpc)]


def _bindings_of(rpc: MethodDescriptor) -> Iterator[Binding]:
    first: http_pb2.HttpRule = rpc.GetOptions().Extensions[annotations_pb2.http]
    for number, rule in enumerate((first, *first.additional_bindings)):
        verb = rule.WhichOneof("pattern")
        if verb not in ("get", "post", "patch", "put", "delete"):
            raise AnnotationInvalid(f"{rpc.full_name}: google.api.http is missing, or has no supported method")
        if rule.body not in ("", "*") or rule.response_body:
            raise AnnotationInvalid(f'{rpc.full_name}: the body must be "" or "*", and response_body must be empty')
        path, parameters = _read_template(rpc, getattr(rule, verb))
        yield Binding(rpc, verb.upper(), path, parameters, rule.body == "*", number)


def _read_template(rpc: MethodDescriptor, template: str) -> tuple[str, tuple[PathParameter, ...]]:
    """The path of the route for a path template, and its parameters."""
    parameters: list[PathParameter] = []

    def segment(match: re.Match[str]) -> str:
        if not _FIELD.fullmatch(match[1]):
            raise AnnotationInvalid(f"{rpc.full_name}: {match[0]} is not of the form {{field}}")
        parameters.append(PathParameter(match[1]))
        return f"{{{parameters[-1].name}}}"

    return _PARAMETER.sub(segment, template), tuple(parameters)
