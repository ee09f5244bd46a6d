"""The routes of ``/api/pkger/v1`` for the table of the gateway."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from services.gateway.routes import Route
from services.gateway.services import Services
from services.gateway.transcoding.bindings import bindings
from services.gateway.transcoding.calling import Caller
from services.gateway.transcoding.comments import read_comments
from services.gateway.transcoding.openapi import Descriptions
from services.gateway.transcoding.problems import pkger_form
from services.gateway.transcoding.streaming import STREAM_LIMITS, StreamLimits

API_PATH = "/api/pkger/"
"""Prefix of the paths of all its routes."""


def api_routes(services: Services, limits: StreamLimits = STREAM_LIMITS) -> list[Route]:
    """
    A row for each binding of a public RPC.

    Args:
        services: Connections to the services.
        limits: Limits of clients of streams.
    """
    peers = {
        "ParserService": services.parser,
        "PlannerService": services.planner,
        "PackageService": services.planner,
        "ApplierService": services.applier,
        "StackService": services.stack,
        "RepositoryService": services.stack,
        "DefinitionService": services.stack,
        "ActionService": services.applier,
        "SnapshotService": services.stack,
    }
    return [
        Route(
            binding.method,
            binding.path,
            Caller(binding, peers[binding.rpc.containing_service.name], limits).answer,
            _operations()[binding.name],
            form=pkger_form,
        )
        for binding in bindings()
    ]


@cache
def api_components() -> Mapping[str, Any]:
    """The JSON Schemas that the rows refer to, for ``components.schemas`` of OpenAPI."""
    return _descriptions().components()


@cache
def _operations() -> Mapping[str, dict[str, Any]]:
    """The OpenAPI operations of the routes, by the name of the binding."""
    return {binding.name: _descriptions().operation(binding) for binding in bindings()}


@cache
def _descriptions() -> Descriptions:
    return Descriptions(bindings(), read_comments())
