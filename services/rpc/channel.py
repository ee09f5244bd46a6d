"""How a process connects to a service: by gRPC, or by any other implementation of a channel."""

from collections.abc import Callable
from typing import Any, Protocol, cast

import grpc
import orjson

from services.rpc.call import MESSAGE_LIMIT

PING_SECONDS = 30.0
"""While a call is open, the connection is pinged after as many seconds without a byte from the server."""

PONG_SECONDS = 20.0
"""A ping without an answer for as many seconds ends the connection, and all calls on it with UNAVAILABLE."""

SAFE_METHODS = {
    "pkger.parser.v1.ParserService": ("ParsePackage", "ParseDefinitions", "RenderPackage", "ListKinds"),
    "pkger.planner.v1.PlannerService": (
        "CreatePlan",
        "ExportPackage",
        "DetectDrift",
        "PlanImport",
        "ListLiveResources",
        "ListPlatforms",
        "CheckPlatform",
    ),
    "pkger.planner.v1.PackageService": (
        "SearchPackages",
        "ListVersions",
        "GetPackage",
        "ResolvePackages",
        "ExplainPackages",
    ),
    "pkger.applier.v1.ApplierService": ("WatchOperation", "GetOperation", "ListOperations"),
    "pkger.applier.v1.ActionService": ("GetActionSet", "ListActionSets", "ListFunctions"),
    "pkger.stack.v1.StackService": (
        "GetStack",
        "ListResources",
        "ListStacks",
        "FindOwners",
        "WatchStack",
        "ListRevisions",
        "GetRevision",
        "DiffRevisions",
        "ListPackages",
        "GetPlan",
        "ListPlans",
    ),
    "pkger.stack.v1.RepositoryService": ("ListRepositories",),
    "pkger.stack.v1.DefinitionService": ("GetDefinition", "ListDefinitions"),
    "pkger.stack.v1.SnapshotService": ("GetSnapshot", "ListSnapshots", "DeleteSnapshot"),
    "pkger.journal.v1.JournalService": (
        "FindPlan",
        "FindOperation",
        "FindNamelessStacks",
        "ListAbandonedOperations",
        "ListBaselines",
        "ReadPlan",
        "RecordDriftCheck",
        "GetOperation",
        "ListOperations",
        "ListEvents",
    ),
    "pkger.journal.v1.ActionSetService": ("GetActionSet", "ListActionSets"),
    "pkger.journal.v1.PlanningService": ("PlanOperation", "PlanStandalonePackage", "StoreExport"),
    "pkger.driver.v1.DriverService": (
        "Describe",
        "ListResources",
        "ReadResources",
        "PrepareSpecs",
        "ListSecretKeys",
        "ListOrgs",
        "Check",
    ),
}
"""Idempotent methods, retried while the server is unreachable; a test compares them with ``idempotency_level``."""

_SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [{"service": service, "method": method} for method in methods],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
        for service, methods in SAFE_METHODS.items()
    ]
}


class Channel(Protocol):
    """
    A connection to one server, as the generated stubs and ``Peer`` use it. ``grpc.aio.Channel`` is one.

    Both types of calls are made with ``method(request, timeout=seconds, metadata=pairs)`` and fail with
    ``grpc.aio.AioRpcError``. A unary call is awaited. A stream is iterated, and ends early with ``cancel()``.
    """

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> Any:
        """Return the function that calls *method*, a full name such as ``/pkger.stack.v1.StackService/GetStack``."""

    def unary_stream(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> Any:
        """Return the function that calls *method*, whose response is a stream."""

    async def channel_ready(self) -> None:
        """Connect, if necessary, and wait for the connection."""

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the state of the connection differs from *last_observed_state*."""

    async def close(self) -> None:
        """Close the connection; calls in flight are cancelled."""


Connect = Callable[[str], Channel]
"""Returns a channel to the server at an address, without waiting for a connection."""


def grpc_channel(address: str, ping: float = PING_SECONDS, pong: float = PONG_SECONDS) -> Channel:
    """
    A gRPC channel, which retries safe methods while the server is unreachable.

    Args:
        address: ``host:port`` or ``unix:/path``.
        ping: Seconds after which the server is pinged while a call is open; gRPC takes one second at least.
        pong: Seconds that the server has to answer a ping.
    """
    # TLS belongs here: a secure channel with the credentials of the peer.
    channel = grpc.aio.insecure_channel(
        address,
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
            ("grpc.service_config", orjson.dumps(_SERVICE_CONFIG).decode()),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2000),
            # A server that hangs, or a network that drops everything, would not end a watch, which has no deadline.
            ("grpc.keepalive_time_ms", round(ping * 1000)),
            ("grpc.keepalive_timeout_ms", round(pong * 1000)),
            # gRPC 1.85 starts no timer for the option above, and has another one, of 60 s, for all pings
            # (https://github.com/grpc/grpc/pull/39239).
            ("grpc.http2.ping_timeout_ms", round(pong * 1000)),
            ("grpc.keepalive_permit_without_calls", 0),
            # By default, gRPC stops after two pings while the client has nothing to send, as in a watch.
            ("grpc.http2.max_pings_without_data", 0),
            # Otherwise all channels of a process to one address share a connection and its backoff.
            ("grpc.use_local_subchannel_pool", 1),
        ],
    )
    # The annotations of grpc.aio lack the parameter ``_registered_method``, which generated code passes.
    return cast("Channel", channel)
