"""
Several services as one process: ``python -m services.local stack platform:embedded parser planner applier``.

A command without a server runs its services this way: one process is ready in less than half the time of five. The
services still call each other by gRPC. Only this module imports all services.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from services.rpc.process import Opened, Server, run_servers
from services.settings import Settings, load, socket_address

PLATFORM = "platform:"
"""Prefix of the name of a platform whose driver runs."""


def servers(names: Sequence[str], settings: Settings) -> list[Server]:
    """
    The servers of the named services, each at its socket.

    Args:
        names: Services, each after those that it calls; the driver of a platform as ``PLATFORM`` and its name.
        settings: Settings with the folder of the sockets.
    """
    return [
        _driver(name.removeprefix(PLATFORM), settings)
        if name.startswith(PLATFORM)
        else Server(name, _SERVICES[name](), [socket_address(settings.run, name)])
        for name in names
    ]


def _driver(name: str, settings: Settings) -> Server:
    from services.drivers.__main__ import server_of

    return server_of(name, settings)


# Services are imported only when they run: a command that reads the record of a stack needs neither YAML nor HTTP.
def _parser() -> Opened:
    from parser_svc.__main__ import opened

    return opened


def _planner() -> Opened:
    from planner_svc.__main__ import opened

    return opened


def _applier() -> Opened:
    from applier_svc import failpoints
    from applier_svc.__main__ import opened

    failpoints.install(failpoints.deadly(os.environ.get(failpoints.VARIABLE, "")))
    return opened


def _stack() -> Opened:
    from stack_svc.__main__ import opened

    return opened


_SERVICES: Mapping[str, Callable[[], Opened]] = {
    "parser": _parser,
    "planner": _planner,
    "applier": _applier,
    "stack": _stack,
}


if __name__ == "__main__":
    # A command parses its package once, and may read what its user may read.
    settings = replace(load(), document_cache=0, repository_folders=None)
    run_servers(servers(sys.argv[1:], settings), settings)
