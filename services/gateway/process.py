"""Runs the gateway as a process: reads the settings, connects to the services, and serves until a signal."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version

from services.gateway.entrances import http_entrances
from services.gateway.middlewares import Site
from services.gateway.organizations import Organizations
from services.gateway.route_table import FORMS, routes
from services.gateway.server import serving_http
from services.gateway.services import connected
from services.gateway.settings import GatewaySettings, load_gateway
from services.rpc.channel import Connect, grpc_channel
from services.rpc.entrances import CannotServe
from services.rpc.log import log_to_stderr
from services.rpc.process import collect_seldom
from services.rpc.sent_token import SentToken, no_token, service_token
from services.rpc.startup_pipe import report_listening, report_problem
from services.settings import HTTP, Settings, load
from services.system import prepare_process
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
    token: SentToken = no_token,
) -> AsyncIterator[Site]:
    """
    The site of the gateway, with its connections.

    Args:
        settings: The settings of the gateway.
        addresses: Addresses of the services, by name.
        connect: Makes the channels to them.
        times: How long calls wait.
        token: Returns the token of calls to services at ports.
    """
    pkger = version("pkger")
    async with connected(addresses, connect, times=times, token=token) as services:
        organizations = Organizations(services.planner, settings.orgs)
        yield Site(routes(services, organizations, pkger), settings, pkger, FORMS)


def run(environ: Mapping[str, str] = os.environ) -> None:
    """
    Serve until SIGTERM, SIGINT or the end of the parent process; the body of ``__main__``.

    Raises:
        SystemExit: The gateway cannot start; the last line of the log says why.
    """
    prepare_process()
    log_to_stderr()
    collect_seldom()
    # A thread makes the documents; with a short interval, the event loop runs again soon, however large they are.
    sys.setswitchinterval(SWITCH_SECONDS)
    settings = load_gateway(environ)
    try:
        asyncio.run(_serve(settings, load(environ)))
    except (OSError, CannotServe) as error:
        report_problem(str(error))
        log.critical("cannot serve", extra={"service": HTTP, "problem": str(error)})
        sys.exit(1)


async def _serve(settings: GatewaySettings, common: Settings) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if parent := os.environ.get("PKGER_PARENT_PIPE"):
        loop.add_reader(int(parent), stop.set)
    entrances = http_entrances(settings, common)
    async with (
        opened(settings, common.addresses, times=common.times, token=service_token(common)) as site,
        serving_http(site, entrances, common.times.grace) as addresses,
    ):
        report_listening()
        log.info("serving", extra={"service": HTTP, "addresses": addresses})
        await stop.wait()
        log.info("stopping", extra={"service": HTTP})
    log.info("stopped", extra={"service": HTTP})
