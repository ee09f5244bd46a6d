"""Takes all figures and prints them: ``python -m bench``, or with ``--objects N`` for other sizes."""

import argparse
import asyncio
import os
import platform
import subprocess
import sys
from pathlib import Path

from bench.applying import applying
from bench.definitions import of_definitions
from bench.door import door
from bench.evaluating import evaluating
from bench.figures import Figure, median_of, seconds, table
from bench.influxdb import on_influxdb
from bench.installing import installing
from bench.journaling import journaling
from bench.listing import listing
from bench.package import Mix
from bench.parsing import parsing_corpus, parsing_floors, parsing_objects
from bench.performing import performing
from bench.ratios import command_ratio, ratios
from bench.resolving import resolving
from bench.serving import serving


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(prog="python -m bench", description="Prints figures; neither passes nor fails.")
    arguments.add_argument(
        "--objects",
        type=int,
        action="append",
        metavar="N",
        help="size of a package to parse, plan and apply; again for more sizes [1000 and 10000]",
    )
    arguments.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        help="folder of published packages (*.yml) to parse, instead of generated ones",
    )
    arguments.add_argument("--parsing", action="store_true", help="measure nothing but parsing")
    options = arguments.parse_args()
    sizes = options.objects or [1_000, 10_000]
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores", flush=True)
    # With few objects, the number of packages is small too: such a run only checks that everything works.
    figures = [_help(), *parsing_corpus(options.corpus, min(97, max(sizes)))]
    for size in sizes:
        figures += parsing_objects(size, Mix.MIXED)
        for mix in (Mix.SMALL, Mix.MIXED):
            figures += parsing_floors(size, mix)
    figures += evaluating(min(1_000, max(sizes)))
    figures += of_definitions(min(1_000, max(sizes)))
    for size in () if options.parsing else sizes:
        for mix in (Mix.SMALL, Mix.MIXED):
            figures += asyncio.run(applying(size, mix))
            figures += asyncio.run(ratios(size, mix))
        figures += [*journaling(size), *listing(size)]
    if not options.parsing:
        figures += asyncio.run(performing(min(1_000, max(sizes))))
        figures += asyncio.run(on_influxdb(min(1_000, max(sizes))))
        figures += asyncio.run(serving(sizes))
        figures += asyncio.run(door(min(500, max(sizes))))
        figures += resolving(min(1_000, max(sizes)))
        figures += asyncio.run(installing(max(1, max(sizes) // 50)))
        figures.append(command_ratio())
    print(table(figures))


def _help() -> Figure:
    pkger = Path(sys.executable).with_name("pkger")
    taken = median_of(5, lambda: subprocess.run([pkger, "--help"], check=True, stdout=subprocess.DEVNULL))
    return Figure("pkger --help", "", seconds(taken), "< 150 ms")


if __name__ == "__main__":
    main()
