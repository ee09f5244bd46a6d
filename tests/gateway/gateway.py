"""The gateway in this process, on a port that the kernel picks, with the services of a test."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from services.access.listeners import Listener, ListenerKind
from services.access.token_file import TokenFile
from services.gateway.credentials import Tokens, read_rows
from services.gateway.entrances import HttpEntrance
from services.gateway.process import opened
from services.gateway.server import serving_http
from services.gateway.settings import GatewaySettings, load_gateway
from tests.cluster import Cluster

TOKEN = "a-token-of-tests"


def settings(folder: Path, **environ: str) -> GatewaySettings:
    """Settings with one token, whose name is ``tester``, and one organization, unless *environ* says otherwise."""
    tokens = folder / "tokens"
    tokens.write_text(f"# For tests.\ntester {hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
    return load_gateway(
        {
            "PKGER_HTTP_TOKENS": str(tokens),
            "PKGER_HTTP_ORGS": "example=embedded/example",
            **environ,
        }
    )


@asynccontextmanager
async def gateway(settings: GatewaySettings, cluster: Cluster, own: TokenFile | None = None) -> AsyncIterator[str]:
    """The address of a gateway, until the block is left; *own* is the token of the home."""
    rows = read_rows(settings.tokens) if settings.tokens else []
    tokens = Tokens(rows, own) if rows or own else Tokens(are_needed=False)
    entrance = HttpEntrance(Listener("127.0.0.1:0", ListenerKind.LOOPBACK), tokens)
    async with (
        opened(settings, cluster.addresses, cluster.connect) as site,
        serving_http(site, [entrance], grace=1) as (address,),
    ):
        yield address


@asynccontextmanager
async def client(address: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of that gateway; with the token of the tests, unless *headers* are given."""
    own = {"Authorization": f"Token {TOKEN}"} if headers is None else headers
    async with aiohttp.ClientSession(f"http://{address}", headers=own) as session:
        yield session
