"""HTTP requests to an InfluxDB server: one pool, few requests at a time; reads are retried, writes sent once."""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import orjson
from tenacity import AsyncRetrying, RetryCallState

from services.rpc.call import loop_time, time_left
from services.system import Clock, Ids

IN_FLIGHT = 8
"""Most requests at once, over all batches: more of them would only queue in the server."""

TIMEOUT_SECONDS = 10.0
"""Timeout of one request."""

_CONNECT_SECONDS = 5.0
_IDLE_SECONDS = 60.0
"""Unused connections are closed after this time: before the server closes them, which looks like a lost answer."""

_READ_SECONDS = 20.0
"""How long a read is retried, if the deadline of its caller allows it."""
_CONNECTIONS = 4
"""Most attempts to connect for one read: the caller soon learns that the server is unreachable, and can retry."""
_FIRST_WAIT, _LONGEST_WAIT, _MOST_DOUBLINGS = 0.1, 2.0, 10

_BUSY = frozenset((429, 502, 503, 504))

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Response:
    """
    An answer of the server.

    Attributes:
        status: The HTTP status.
        body: The JSON of the body; None for an empty body, or one that is not JSON.
        version: The version of the server; empty if the answer does not have it.
        retry_after: Seconds that the server asks to wait; None: it does not ask.
        is_whole: Whether the body fits the status: a success has JSON, or no body.
    """

    status: int
    body: Any = None
    version: str = ""
    retry_after: float | None = None
    is_whole: bool = True

    @property
    def code(self) -> str:
        """The code of an error; empty for any other answer."""
        return self._text("code")

    @property
    def message(self) -> str:
        """The message of an error; empty for any other answer."""
        return self._text("message")

    @property
    def description(self) -> str:
        """Status and message, for error messages."""
        return f"{self.status}: {self.message}" if self.message else str(self.status)

    def _text(self, key: str) -> str:
        value = self.body.get(key) if isinstance(self.body, dict) else None
        return value if isinstance(value, str) else ""


class NotSent(Exception):
    """There was no connection, so the request certainly had no effect."""


class Unanswered(Exception):
    """The request may have arrived, but its answer is missing or incomplete; *status*: its status, 0 if missing."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(f"its answer with status {status} is incomplete: {message}" if status else message)
        self.status = status


class Client:
    """Sends requests to one server with one token; no error message contains the token."""

    def __init__(
        self, url: str, token: str, tls: ssl.SSLContext | bool, ids: Ids, clock: Clock, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        """
        Prepare the client; nothing is sent yet. Call it in the event loop that sends the requests.

        Args:
            url: The server, without a slash at the end.
            token: The credential.
            tls: How the certificate of the server is verified; False: it is not.
            ids: Draws jitter.
            clock: The time of day, for servers that send a time to retry at instead of a number of seconds.
            timeout: Timeout of one request, in seconds.
        """
        self.url = url
        self._ids = ids
        self._clock = clock
        self._timeout = timeout
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=IN_FLIGHT, keepalive_timeout=_IDLE_SECONDS, ssl=tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Authorization": f"Token {token}", "Accept": "application/json", "User-Agent": "pkger"},
            auto_decompress=False,
            middlewares=(_once,),
        )

    async def get(self, path: str, query: Query = ()) -> Response:
        """
        Read; retry while the server is busy or unreachable and the deadline of the caller allows it.

        Raises:
            NotSent: There is no connection.
            Unanswered: The answer is missing or incomplete.
        """
        end = loop_time() + (time_left(_READ_SECONDS) or 0.0)

        def is_over(state: RetryCallState) -> bool:
            is_away = (
                state.outcome is not None and state.outcome.failed and isinstance(state.outcome.exception(), NotSent)
            )
            return (is_away and state.attempt_number >= _CONNECTIONS) or loop_time() + self._wait(state) >= end

        retrying = AsyncRetrying(
            retry=_is_worth_repeating, stop=is_over, wait=self._jittered, retry_error_callback=_last, reraise=True
        )
        try:
            answer: Response = await retrying(self._exchange, "GET", path, query, None)
        finally:
            # AsyncRetrying refers to itself, and would keep the last answer until the garbage collector runs.
            retrying.iter_state.reset()
        return answer

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Response:
        """
        Write, once.

        Raises:
            NotSent: The request certainly had no effect.
            Unanswered: Unknown whether the request had an effect.
        """
        return await self._exchange(method, path, (), body)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def _exchange(self, method: str, path: str, query: Query, body: Mapping[str, Any] | None) -> Response:
        data = None if body is None else orjson.dumps(body)
        headers = {} if data is None else {"Content-Type": "application/json"}
        status = 0
        async with self._slots:
            seconds = time_left(self._timeout) or 0.0
            timeout = aiohttp.ClientTimeout(total=seconds or 1e-3, sock_connect=_CONNECT_SECONDS)
            try:
                async with self._session.request(
                    method,
                    self.url + path,
                    params=list(query),
                    data=data,
                    headers=headers,
                    timeout=timeout,
                    allow_redirects=False,
                ) as answer:
                    status = answer.status
                    return self._read(answer, await answer.read())
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
                raise NotSent(_plain(error)) from None
            except TimeoutError:
                raise Unanswered(f"no answer within {seconds:.1f} seconds", status) from None
            except (aiohttp.ClientError, OSError) as error:
                raise Unanswered(_plain(error), status) from None

    def _read(self, answer: aiohttp.ClientResponse, data: bytes) -> Response:
        body, is_json = None, not data
        with contextlib.suppress(ValueError):
            body, is_json = orjson.loads(data) if data else None, True
        return Response(
            answer.status,
            body,
            answer.headers.get("X-Influxdb-Version", ""),
            self._asked_wait(answer.headers.get("Retry-After", "")),
            is_json or answer.status >= 300,
        )

    def _asked_wait(self, text: str) -> float | None:
        if text.isascii() and text.isdigit():
            return float(text[:6])
        try:
            return max(parsedate_to_datetime(text).timestamp() - self._clock() / 1e6, 0.0)
        except (ValueError, TypeError):
            return None

    def _jittered(self, state: RetryCallState) -> float:
        outcome = state.outcome
        retry_after = outcome.result().retry_after if outcome and not outcome.failed else None
        return max(retry_after or 0.0, self._wait(state) * self._ids.fraction())

    def _wait(self, state: RetryCallState) -> float:
        """The longest wait before the next attempt."""
        outcome = state.outcome
        retry_after = outcome.result().retry_after if outcome and not outcome.failed else None
        doublings = min(state.attempt_number - 1, _MOST_DOUBLINGS)
        return max(retry_after or 0.0, min(_FIRST_WAIT * 2.0**doublings, _LONGEST_WAIT))


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    # After a broken connection aiohttp would repeat a PUT, DELETE or GET; but the server may have received the write.
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise Unanswered(_plain(error)) from None


def _is_worth_repeating(state: RetryCallState) -> bool:
    outcome = state.outcome
    if outcome is None:
        return False
    if outcome.failed:
        return isinstance(outcome.exception(), NotSent | Unanswered)
    answer: Response = outcome.result()
    return answer.status in _BUSY or not answer.is_whole


def _last(state: RetryCallState) -> Any:
    """The result of the last attempt: an answer, or its error."""
    if state.outcome is None:
        raise Unanswered("nothing was asked")
    return state.outcome.result()


def _plain(error: BaseException) -> str:
    """Why a connection failed, as text; the errors of the library never contain headers."""
    return str(error) or type(error).__name__
