"""A stand-in server on a port that the kernel picks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ssl import SSLContext

from aiohttp import web

from tests.influx.application import Stand
from tests.influx.faults import Faults
from tests.influx.records import Records
from tests.influx.setup import set_up
from tests.influx.state import State

FORM = {
    "username": "operator",
    "password": "",
    "org": "main",
    "bucket": "first",
    "token": "",
    "retentionPeriodSeconds": 0,
    "retentionPeriodHrs": 0,
}


@dataclass(frozen=True, slots=True)
class Influx:
    """
    A running stand-in.

    Attributes:
        token: The operator's token, which may do everything in every organization.
        org: The id of the organization of the set-up; ``org_name`` is its name.
        state: The state of the server, for reading it without the API.
    """

    url: str
    token: str
    org: str
    org_name: str
    state: State
    faults: Faults
    records: Records


@asynccontextmanager
async def influx(
    port: int = 0,
    host: str = "127.0.0.1",
    token: str = "",
    is_set_up: bool = True,
    tls: SSLContext | None = None,
) -> AsyncIterator[Influx]:
    """
    A stand-in that runs until the context ends, which raises its own defects.

    Args:
        token: The operator's token; a new one if empty.
        tls: The TLS context with the certificate of the server; None for plain HTTP.
        is_set_up: Whether the set-up was done; if not, token and organization are empty.
    """
    state = State()
    done = set_up(state, {**FORM, "token": token}) if is_set_up else None
    stand = Stand(state)
    runner = web.AppRunner(stand.application(), access_log=None, shutdown_timeout=0.1, auto_decompress=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=tls)
        await site.start()
        url = f"{'http' if tls is None else 'https'}://{host}:{runner.addresses[0][1]}"
        auth, org = (done["auth"], done["org"]) if done else ({"token": ""}, {"id": "", "name": ""})
        yield Influx(url, auth["token"], org["id"], org["name"], state, stand.faults, stand.records)
    finally:
        await runner.cleanup()
    if stand.defects:
        raise ExceptionGroup("the stand-in has defects", stand.defects)
