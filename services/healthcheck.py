"""Asks a server whether it serves: ``python -m services.healthcheck [ADDRESS | SERVICE]``, exit 0 when it does."""

import argparse
import sys
from collections.abc import Sequence

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from services.settings import PORTS, Settings, load

ANY_HOST = ("0.0.0.0", "[::]", "")  # noqa: S104
"""Hosts that a server binds to be reached at every address of its machine, this one too."""


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


def problem_of(address: str, seconds: float) -> str:
    """What keeps the server at *address* from serving; empty when it serves. Waits *seconds* at most."""
    with grpc.insecure_channel(address) as channel:
        try:
            status = HealthStub(channel).Check(HealthCheckRequest(), timeout=seconds).status
        except grpc.RpcError as error:
            return f"{address} does not answer: {error.code().name}"
    if status == HealthCheckResponse.SERVING:
        return ""
    return f"{address} is {HealthCheckResponse.ServingStatus.Name(status)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; the result is the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m services.healthcheck", description="Ask a server whether it serves."
    )
    parser.add_argument(
        "server", nargs="?", default="", help=f"address, or one of {', '.join(PORTS)}; default: where PKGER_LISTEN says"
    )
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S", help="seconds to wait for the answer (5)")
    given = parser.parse_args(arguments)
    try:
        problem = problem_of(address_to_ask(given.server, load()), given.timeout)
    except ValueError as error:
        problem = str(error)
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
