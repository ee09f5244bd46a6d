"""Calls of a service, in one way: waiting for the connection, deadline, request id, errors of the core."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, cast

import grpc

from services.access.authentication import AUTHORIZATION, NOBODY
from services.access.token_file import TokenUnusable
from services.core.addresses import SOCKET_PREFIX
from services.core.errors import PlatformUnknown, ServiceUnavailable, Unauthenticated
from services.private_files import PathRefused, own_folder
from services.rpc.call import REQUEST_ID_KEY, caller, loop_time, new_request_id, request_id, time_left
from services.rpc.channel import Connect, grpc_channel
from services.rpc.driver_answers import OVERSIZED, BoundedChannel
from services.rpc.errors import from_rpc
from services.rpc.sent_token import SentToken, no_token
from services.system import Ids, MachineIds
from services.times import Times

Response = TypeVar("Response")


class Peer:
    """
    One service that this process calls.

    Attributes:
        name: Name of the service, for errors.
        address: Its address.
        platform: Configured name of the platform whose driver this is; empty for any other service.
        channel: For the generated stubs.
        times: How long calls wait.
    """

    def __init__(
        self,
        name: str,
        address: str,
        *,
        platform: str = "",
        connect: Connect = grpc_channel,
        ids: Ids = MachineIds(),
        times: Times = Times(),
        token: SentToken = no_token,
        is_of_others: bool = False,
    ) -> None:
        """
        Connect at the first call.

        Args:
            name: Name of the service, for errors.
            address: Its address.
            platform: Configured name of the platform whose driver this is; empty for any other service.
            connect: Makes the channel.
            ids: Draws request ids for calls outside of a served call.
            times: How long calls wait for a connection, and for an answer.
            token: Returns the token of calls; it is not sent to a socket.
            is_of_others: Whether it is a driver that pkger does not run, whose socket may be in any folder.
        """
        self.name = name
        self.address = address
        self.platform = platform
        self._ids = ids
        self.times = times
        is_socket = address.startswith(SOCKET_PREFIX)
        self._token = no_token if is_socket else token
        self._is_private = is_socket and not is_of_others
        channel = connect(address)
        # The generated stubs are annotated with this type, but use only the methods of Channel.
        self.channel = cast("grpc.aio.Channel", BoundedChannel(channel) if platform else channel)
        # The answers of ``call_once``, valid until the watch of their connection ends.
        self._answers: dict[Any, Any] = {}
        self._watch: asyncio.Task[None] | None = None

    async def call(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[Any, Response] | grpc.UnaryUnaryMultiCallable[Any, Response]",
        request: Any,
        seconds: float | None = None,
    ) -> Response:
        """
        Call a unary method; wait for a connection first.

        Args:
            method: From the generated stub.
            request: Its request.
            seconds: Its timeout; the deadline of the served call applies too. Infinite: only that. None: the usual one.

        Raises:
            PkgerError: The error of the service, or ``ServiceUnavailable`` for a status without one.
        """
        timeout = await self._connected(seconds)
        with self._translated():
            call: Any = method(request, timeout=timeout, metadata=self._metadata())
            response: Response = await call
        return self._decoded(response)

    async def call_once(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[Any, Response] | grpc.UnaryUnaryMultiCallable[Any, Response]",
        request: Any,
        is_lasting: Callable[[Response], bool],
    ) -> Response:
        """
        As ``call``, once for each connection: for a response that stays the same as long as the process of the service
        runs. Another process has another connection.

        Args:
            method: As for ``call``.
            request: As for ``call``.
            is_lasting: Whether a response is kept for the next call.
        """
        key = (type(request), request.SerializeToString())
        if self._watch is None or self._watch.done():
            await self._connected(None)
            self._answers, self._watch = {}, asyncio.create_task(_end_of(self.channel))
        answers = self._answers
        if key in answers:
            kept: Response = answers[key]
            return kept
        response = await self.call(method, request)
        if is_lasting(response):
            answers[key] = response
        return response

    async def stream(
        self,
        method: "grpc.aio.UnaryStreamMultiCallable[Any, Response] | grpc.UnaryStreamMultiCallable[Any, Response]",
        request: Any,
        seconds: float | None = None,
    ) -> AsyncGenerator[Response, None]:
        """
        Call a method with a streamed response; arguments and errors as for ``call``.

        Leaving the loop early cancels the call.
        """
        timeout = await self._connected(seconds)
        with self._translated():
            call: Any = method(request, timeout=timeout, metadata=self._metadata())
            try:
                async for response in call:
                    yield self._decoded(response)
            finally:
                call.cancel()

    async def close(self) -> None:
        """Close the connection."""
        if self._watch:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self.channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def _connected(self, seconds: float | None) -> float | None:
        """
        Wait for a connection, so that the restart of a service fails no call; return the time left for the call.

        A call with wait_for_ready would wait until its deadline, and without a deadline for ever.

        Raises:
            ServiceUnavailable: There was no connection in time. The call was not sent.
        """
        began, seconds = loop_time(), self.times.call if seconds is None else seconds
        left = time_left(seconds)
        if self._is_private:
            self._refuse_socket_of_others()
        try:
            async with asyncio.timeout(min(self.times.ready, math.inf if left is None else left)):
                await self.channel.channel_ready()
        except TimeoutError as error:
            raise ServiceUnavailable(self.name, self.address, "no connection", self.platform) from error
        left = time_left(seconds - (loop_time() - began))
        if left is not None and left <= 0.0:
            # This process stood still meanwhile: the lease of an applier may have ended.
            raise ServiceUnavailable(self.name, self.address, "no connection in time", self.platform)
        return left

    def _refuse_socket_of_others(self) -> None:
        """
        Check that nobody else can have made the socket: who answers there gets packages, and their secrets.

        Raises:
            ServiceUnavailable: Others may enter its folder, or control it.
        """
        try:
            own_folder(Path(self.address.removeprefix(SOCKET_PREFIX)).parent)
        except PathRefused as error:
            raise ServiceUnavailable(self.name, self.address, str(error), self.platform) from error
        except OSError:
            # There is no server either.
            return

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        """
        The metadata of a call.

        Raises:
            ServiceUnavailable: The token cannot be read.
        """
        pairs = ((REQUEST_ID_KEY, request_id.get() or new_request_id(self._ids)),)
        try:
            token = self._token()
        except TokenUnusable as error:
            raise ServiceUnavailable(self.name, self.address, f"no token: {error}", self.platform) from error
        return (*pairs, (AUTHORIZATION, f"Bearer {token}")) if token else pairs

    def _decoded(self, response: Response) -> Response:
        """
        A response that has been decoded.

        Raises:
            ServiceUnavailable: It has too many fields.
        """
        if response is OVERSIZED:
            raise ServiceUnavailable(self.name, self.address, OVERSIZED.problem, self.platform, answered=True)
        return response

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raised = from_rpc(error, self.name, self.address, self.platform)
            if isinstance(raised, Unauthenticated) and caller.get() is not NOBODY:
                # The caller of this service has a valid token, and cannot mend this.
                refused = "it refuses the token of its caller (PKGER_OPERATOR_TOKEN_FILE)"
                raise ServiceUnavailable(self.name, self.address, refused, self.platform, answered=True) from error
            raise raised from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled the caller: the channel was closed during the call, which cancels the call.
            problem = "the connection was closed"
            raise ServiceUnavailable(self.name, self.address, problem, self.platform) from error


async def _end_of(channel: "grpc.aio.Channel") -> None:
    """Wait until the connection of *channel*, which is ready, is lost or closed."""
    await channel.wait_for_state_change(grpc.ChannelConnectivity.READY)


class DriverRow(Protocol):
    """A configured platform, as far as its driver is called."""

    @property
    def driver(self) -> str:
        """Its driver in this program; empty for a driver of others."""

    @property
    def address(self) -> str:
        """The address of the driver."""


class Platforms:
    """The drivers of all platforms, with one connection each, which is made when it is first needed."""

    def __init__(
        self,
        configured: Mapping[str, DriverRow],
        connect: Connect = grpc_channel,
        ids: Ids = MachineIds(),
        times: Times = Times(),
        token: SentToken = no_token,
    ) -> None:
        """
        Args:
            configured: The platforms by name.
            connect: As for ``Peer``.
            ids: As for ``Peer``.
            times: As for ``Peer``.
            token: As for ``Peer``; only drivers of this program get it.
        """
        self._configured = configured
        self._connect = connect
        self._ids = ids
        self._times = times
        self._token = token
        self._drivers: dict[str, Peer] = {}
        self.names = tuple(configured)

    def driver(self, platform: str) -> Peer:
        """
        The driver of *platform*.

        Raises:
            PlatformUnknown: No platform with this name is configured.
        """
        if platform not in self._drivers:
            if platform not in self._configured:
                raise PlatformUnknown(platform, list(self._configured))
            row = self._configured[platform]
            self._drivers[platform] = Peer(
                "platform",
                row.address,
                platform=platform,
                connect=self._connect,
                ids=self._ids,
                times=self._times,
                token=self._token if row.driver else no_token,
                is_of_others=not row.driver,
            )
        return self._drivers[platform]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        for peer in self._drivers.values():
            await peer.close()
