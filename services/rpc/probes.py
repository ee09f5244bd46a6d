"""Health and reflection, which no dispatcher serves: they are neither counted nor logged."""

import logging
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any, cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc
from grpc_status import rpc_status

from services.core.errors import PkgerError
from services.rpc.dispatcher import Call, Handler
from services.rpc.errors import to_status
from services.rpc.undecodable import marking, refuse_undecodable

log = logging.getLogger("pkger.rpc")

REFLECTION_PREFIX = f"/{reflection.SERVICE_NAME}/"
"""Of the full names of the methods of reflection."""


_NOT_IMPLEMENTED = "/grpc.health.v1.Health/List"
"""A method that the servicer of health for asyncio lacks: gRPC would log a traceback for each call."""


class Probes:
    """
    Health and reflection of one process.

    Attributes:
        handlers: By full method name.
    """

    def __init__(self, services: Collection[str]) -> None:
        """*services* are the full names of the services of the process."""
        self.handlers: dict[str, Handler] = {}
        self._health = aio.HealthServicer()
        self._services = services
        names = [*services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME]
        # Generated code calls only the two methods below.
        server = cast("grpc.aio.Server", self)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflection.aio.ReflectionServicer(names), server)

    async def set_health(self, is_serving: bool) -> None:
        """Set the health of the process, and of each service."""
        status = health_pb2.HealthCheckResponse
        for name in ("", *self._services):
            await self._health.set(name, status.SERVING if is_serving else status.NOT_SERVING)

    async def stop(self) -> None:
        """Set the health to NOT_SERVING for good."""
        await self._health.enter_graceful_shutdown()

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """See ``Dispatcher``: generated code calls both."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add the handlers of a service, by name of the method."""
        for name, handler in handlers.items():
            method = f"/{service}/{name}"
            if method != _NOT_IMPLEMENTED:
                self.handlers[method] = _refusing(method, handler)


def _refusing(method: str, handler: Handler) -> Handler:
    """*handler*, which refuses requests that cannot be decoded."""
    coders = marking(handler.request_deserializer), handler.response_serializer

    async def checked(request: Any, call: Call) -> Any:
        try:
            refuse_undecodable(request, method)
        except PkgerError as error:
            log.info("call", extra={"method": method, "code": error.reason, "peer": call.peer()})
            status = rpc_status.to_status(to_status(error))
            await call.abort(status.code, status.details, status.trailing_metadata)
        return request

    async def each(requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Any]:
        async for request in requests:
            yield await checked(request, call)

    async def serve(request: Any, call: Call) -> Any:
        return await behaviour(await checked(request, call), call)

    async def serve_stream(requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Any]:
        async for response in behaviour(each(requests, call), call):
            yield response

    behaviour: Any
    if handler.request_streaming:
        behaviour = handler.stream_stream
        return grpc.stream_stream_rpc_method_handler(serve_stream, *coders)
    if handler.response_streaming:
        # Its servicer is a coroutine that writes the responses.
        behaviour = handler.unary_stream
        return grpc.unary_stream_rpc_method_handler(serve, *coders)
    behaviour = handler.unary_unary
    return grpc.unary_unary_rpc_method_handler(serve, *coders)
