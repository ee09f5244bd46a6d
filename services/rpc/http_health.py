"""Asks the HTTP gateway for its health."""

import asyncio
import json
import socket
from contextlib import closing
from http.client import HTTPConnection, HTTPException

from services.rpc.call import loop_time

_PAUSE_SECONDS = 0.1


async def http_problem_of(address: str, seconds: float, wait: bool = False) -> str:
    """
    Why the gateway at *address*, or a service behind it, is not healthy; empty when all are.

    Args:
        address: ``host:port`` or ``unix:/path``.
        seconds: Timeout of all requests together.
        wait: Return only a healthy state, or the last problem at the timeout.
    """
    until, problem = loop_time() + seconds, f"{address} does not answer"
    while (left := until - loop_time()) > 0:
        problem = await asyncio.to_thread(_problem, address, left)
        if not (problem and wait):
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    return problem


def _problem(address: str, seconds: float) -> str:
    try:
        with closing(_Connection(address, seconds)) as connection:
            connection.request("GET", "/health")
            response = connection.getresponse()
            body = response.read()
    except (OSError, HTTPException):
        return f"{address} does not answer"
    try:
        message = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        return f"{address} is no gateway of pkger: it answers with status {response.status}"
    return "" if response.status == 200 else f"{address}: {message}"


class _Connection(HTTPConnection):
    """A connection to a Unix socket, or to a port."""

    def __init__(self, address: str, seconds: float) -> None:
        self._path = address.removeprefix("unix:") if address.startswith("unix:") else ""
        super().__init__("localhost" if self._path else address, timeout=seconds)

    def connect(self) -> None:
        """Connect."""
        if not self._path:
            super().connect()
            return
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
