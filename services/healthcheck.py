"""Checks whether servers serve: ``python -m services.healthcheck [ADDRESS | SERVICE]...``; exit status 0 if all do."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from services.access.listeners import ANY_HOST
from services.rpc.health import problem_of
from services.rpc.http_health import http_problem_of
from services.settings import PORTS, Settings, load


def address_to_ask(server: str, settings: Settings) -> str:
    """
    Where to ask: of several addresses of PKGER_LISTEN, at the first.

    Args:
        server: An address, the name of a service, or empty for the server of this environment.
        settings: What the environment says.

    Raises:
        ValueError: *server* is empty and the environment does not say where its server listens.
    """
    if server:
        return settings.addresses.get(server, server)
    if not settings.listen:
        raise ValueError(f"name an address or one of {', '.join(PORTS)}, or set PKGER_LISTEN")
    first = settings.listen[0]
    host, colon, port = first.rpartition(":")
    return f"127.0.0.1:{port}" if colon and host.strip("[]") in ANY_HOST else first


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; the result is the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m services.healthcheck", description="Ask servers whether they serve."
    )
    parser.add_argument(
        "servers",
        nargs="*",
        metavar="server",
        help=f"address, or one of {', '.join(PORTS)}; default: where PKGER_LISTEN says",
    )
    parser.add_argument("--wait", action="store_true", help="wait for servers that do not serve yet")
    parser.add_argument("--http", action="store_true", help="ask by HTTP, as the gateway answers no calls of gRPC")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds to wait in all (5)")
    options = parser.parse_args(arguments)
    settings = load()
    try:
        addresses = [address_to_ask(server, settings) for server in options.servers or [""]]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    problems = asyncio.run(_problems(addresses, options.timeout, options.wait, options.http))
    for problem in filter(None, problems):
        print(problem, file=sys.stderr)
    return 1 if any(problems) else 0


async def _problems(addresses: Sequence[str], seconds: float, wait: bool, by_http: bool) -> list[str]:
    ask = http_problem_of if by_http else problem_of
    return await asyncio.gather(*(ask(address, seconds, wait) for address in addresses))


if __name__ == "__main__":
    sys.exit(main())
