"""Runs the gateway as a process: reads the settings, connects to the services, and serves until a signal."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version

from services.gateway.credentials import Tokens, TokensInvalid, read_tokens
from services.gateway.middlewares import Site
from services.gateway.organizations import Organizations
from services.gateway.route_table import FORMS, routes
from services.gateway.server import serving_http
from services.gateway.services import connected
from services.gateway.settings import GatewaySettings, load_gateway
from services.rpc.channel import Connect, grpc_channel
from services.rpc.log import log_to_stderr
from services.rpc.process import CannotServe, collect_seldom
from services.rpc.startup_pipe import report_listening, report_problem
from services.settings import Settings, load
from services.system import leave_no_core, raise_open_files
from services.times import Times

log = logging.getLogger("pkger.http")


SWITCH_SECONDS = 0.001
"""The switch interval of Python: how long a thread runs while another one waits."""


@asynccontextmanager
async def opened(
    settings: GatewaySettings,
    addresses: Mapping[str, str],
    connect: Connect = grpc_channel,
    times: Times = Times(),
) -> AsyncIterator[Site]:
    """
    The site of the gateway, with its connections.

    Args:
        settings: The settings of the gateway.
        addresses: Addresses of the services, by name.
        connect: Makes the channels to them.
        times: How long calls wait.

    Raises:
        CannotServe: Other machines could use the gateway without tokens, or the file of tokens cannot be used.
    """
    tokens, pkger = _tokens(settings), version("pkger")
    async with connected(addresses, connect, times=times) as services:
        organizations = Organizations(services.planner, settings.orgs)
        yield Site(routes(services, organizations, pkger), tokens, settings, pkger, FORMS)


def _tokens(settings: GatewaySettings) -> Tokens:
    if settings.tokens is not None:
        try:
            return read_tokens(settings.tokens)
        except TokensInvalid as error:
            raise CannotServe(f"PKGER_HTTP_TOKENS: {error}") from error
    if not settings.is_on_loopback and not settings.is_open:
        raise CannotServe(
            f"PKGER_HTTP_ADDRESS={settings.listen} lets other machines in without tokens: set PKGER_HTTP_TOKENS, "
            "or listen on 127.0.0.1"
        )
    return Tokens()


def run(environ: Mapping[str, str] = os.environ) -> None:
    """
    Serve until SIGTERM, SIGINT or the end of the parent process; the body of ``__main__``.

    Raises:
        SystemExit: The gateway cannot start; the last line of the log says why.
    """
    leave_no_core()
    raise_open_files()
    log_to_stderr()
    collect_seldom()
    # A thread makes the documents; with a short interval, the event loop runs again soon, however large they are.
    sys.setswitchinterval(SWITCH_SECONDS)
    settings = load_gateway(environ)
    try:
        asyncio.run(_serve(settings, load(environ)))
    except (OSError, CannotServe) as error:
        report_problem(str(error))
        log.critical("cannot serve", extra={"service": "http", "problem": str(error)})
        sys.exit(1)


async def _serve(settings: GatewaySettings, common: Settings) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if parent := os.environ.get("PKGER_PARENT_PIPE"):
        loop.add_reader(int(parent), stop.set)
    async with (
        opened(settings, common.addresses, times=common.times) as site,
        serving_http(site, settings.listen, common.times.grace) as address,
    ):
        report_listening()
        log.info("serving", extra={"service": "http", "address": address})
        if not site.tokens.are_needed:
            message = "no tokens are configured: any client of this address may change everything (PKGER_HTTP_TOKENS)"
            log.warning(message, extra={"address": address})
        await stop.wait()
        log.info("stopping", extra={"service": "http"})
    log.info("stopped", extra={"service": "http"})
