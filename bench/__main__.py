"""Takes all figures and prints them: ``python -m bench``, or with ``--objects N`` for other sizes."""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
from pathlib import Path

from bench.applying import applying
from bench.figures import Figure, median_of, seconds, table
from bench.package import Mix
from bench.parsing import parsing


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(prog="python -m bench", description="Prints figures; neither passes nor fails.")
    arguments.add_argument(
        "--objects",
        type=int,
        action="append",
        metavar="N",
        help="size of a package to plan and apply; again for more sizes; the first is parsed [1000 and 10000]",
    )
    sizes = arguments.parse_args().objects or [1_000, 10_000]
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores", flush=True)
    figures = [_help(), *parsing(sizes[0], Mix.MIXED)]
    for size in sizes:
        for mix in (Mix.SMALL, Mix.MIXED):
            figures += asyncio.run(applying(size, mix))
    print(table(figures))


def _help() -> Figure:
    pkger = Path(sys.executable).with_name("pkger")
    taken = median_of(5, lambda: subprocess.run([pkger, "--help"], check=True, stdout=subprocess.DEVNULL))
    return Figure("pkger --help", "", seconds(taken), "< 150 ms")


if __name__ == "__main__":
    main()
