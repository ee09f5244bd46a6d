"""
Run a stand-in server: ``python -m tests.influx [--port N] [--token TOKEN] [--fresh]``.

It prints its URL and its token on one line each, and runs until it is stopped.
"""

import argparse
import asyncio

from tests.influx.server import influx


async def _run(port: int, token: str, is_fresh: bool) -> None:
    async with influx(port, token=token, is_set_up=not is_fresh) as server:
        print(f"url {server.url}")
        print(f"token {server.token}")
        print(f"org {server.org} {server.org_name}", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.influx", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: the kernel picks one")
    parser.add_argument("--token", default="", help="the operator's token; a new one if not given")
    parser.add_argument("--fresh", action="store_true", help="leave the set-up to the client")
    options = parser.parse_args()
    try:
        asyncio.run(_run(options.port, options.token, options.fresh))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
