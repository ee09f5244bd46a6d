"""Asks servers whether they serve: ``python -m services.healthcheck [ADDRESS | SERVICE]...``, exit 0 when all do."""

import argparse
import sys
import time
from collections.abc import Sequence

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.settings import PORTS, Settings, load

ANY_HOST = ("0.0.0.0", "[::]", "")  # noqa: S104
"""Hosts that a server binds to be reached at every address of its machine, this one too."""

_RECONNECT_MS = 50
"""Pause between attempts to connect to a server that is just starting."""

_OPTIONS = [(f"grpc.{name}_reconnect_backoff_ms", _RECONNECT_MS) for name in ("initial", "min", "max")]


def address_to_ask(server: str, settings: Settings) -> str:
    """
    Where to ask.

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
    host, colon, port = settings.listen.rpartition(":")
    return f"127.0.0.1:{port}" if colon and host in ANY_HOST else settings.listen


def problem_of(address: str, seconds: float, wait: bool = False) -> str:
    """
    What keeps the server at *address* from serving; empty when it serves.

    Args:
        address: Whom to ask.
        seconds: How long to wait for the answer at most.
        wait: Take only "it serves" for an answer: wait for a server that is not there yet, or not ready.
    """
    problem = f"{address} does not answer"
    with grpc.insecure_channel(address, options=_OPTIONS) as channel:
        # A watch tells the state of now first, and then every other one.
        answers = HealthStub(channel).Watch(HealthCheckRequest(), timeout=seconds, wait_for_ready=wait)
        try:
            for answer in answers:
                if answer.status == HealthCheckResponse.SERVING:
                    return ""
                problem = f"{address} is {HealthCheckResponse.ServingStatus.Name(answer.status)}"
                if not wait:
                    return problem
        except grpc.RpcError as error:
            return f"{problem}: {error.code().name}"
    return problem


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
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds to wait in all (5)")
    given = parser.parse_args(arguments)
    settings, end = load(), time.monotonic() + given.timeout
    try:
        addresses = [address_to_ask(server, settings) for server in given.servers or [""]]
        problems = [problem_of(address, max(end - time.monotonic(), 0), given.wait) for address in addresses]
    except ValueError as error:
        problems = [str(error)]
    for problem in filter(None, problems):
        print(problem, file=sys.stderr)
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
