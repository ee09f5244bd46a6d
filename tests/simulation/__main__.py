"""The simulation from the command line: ``make simulate`` (docs/simulation.md)."""

import argparse
import itertools
import math
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from tests.simulation import coverage
from tests.simulation.drawing import drawn
from tests.simulation.features import holds
from tests.simulation.reduce import cpu_seconds, reduced, report
from tests.simulation.running import HarnessBroken, Result, run
from tests.simulation.scenario import Scenario, ScenarioInvalid, read_file, to_json, unwritable, write_file
from tests.simulation.search import Findings, features_named, results, template

FOUND, MISUSED, BROKEN, INTERRUPTED = 1, 2, 3, 130
"""Exit status: a violation; wrong arguments; a defect of the simulation itself; Ctrl-C."""

_LAST_LINES = 100
"""How many lines of its trace are printed for a run that does not end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or search as *arguments* say; returns the exit status."""
    options = _options(arguments)
    try:
        with template() as folder:
            if options.scenario and options.reduce:
                return _reduce(options.scenario, options, folder)
            return _one(options.scenario, options, folder) if options.scenario else _search(options, folder)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        # Python itself would exit with 1, the status of a violation.
        problem = str(error) if isinstance(error, HarnessBroken) else traceback.format_exc()
        print(f"The simulation failed, and not what it simulates.\n{problem}", file=sys.stderr)
        return BROKEN


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make simulate", description="Run seeds until the time is over.")
    parser.add_argument("--minutes", type=_number(float), default=1.0)
    parser.add_argument("--seed", type=_number(int), help="run this one only")
    parser.add_argument("--first", type=_number(int), help="the first of many")
    parser.add_argument("--features", default="", help="names with commas between them, or all")
    parser.add_argument("--scenario", help="a JSON file")
    parser.add_argument("--trace", action="store_true", help="print what happened")
    parser.add_argument("--reduce", metavar="KIND", help="find the smallest scenario that shows this violation")
    parser.add_argument("--save", help="write the scenario of the seed, with its faults, into this file")
    options = parser.parse_args(arguments)
    problem = _contradiction(options)
    try:
        features_named(options.features)
        options.scenario = _scenario_of(options)
    except (ValueError, ScenarioInvalid, OSError) as error:
        _misused(str(error))
    if problem := unwritable(options.save) or problem:
        _misused(problem)
    return options


def _contradiction(options: argparse.Namespace) -> str:
    """The error about options that exclude each other, one of which would be ignored; empty: there is none."""
    if not 0 <= options.minutes < math.inf:
        return f"MINUTES: {options.minutes} is no time"
    if options.scenario:
        given = {"SEED": options.seed, "FIRST": options.first, "FEATURES": options.features or None}
        return next((f"SCENARIO says it all: leave out {name}" for name in given if given[name] is not None), "")
    if options.seed is not None:
        return "SEED is one run, FIRST begins many: leave one out" if options.first is not None else ""
    given = {"REDUCE": options.reduce, "SAVE": options.save, "TRACE": options.trace}
    return next((f"{name} takes one run: name its SEED or SCENARIO" for name in given if given[name]), "")


def _scenario_of(options: argparse.Namespace) -> Scenario | None:
    """The one scenario to run; None: the options ask for a search."""
    if options.scenario:
        return read_file(Path(options.scenario))
    if options.seed is None:
        return None
    allowed, known = features_named(options.features)
    return drawn(options.seed, allowed, known=known)


def _one(scenario: Scenario, options: argparse.Namespace, folder: Path) -> int:
    result = run(scenario, folder)
    if options.trace:
        print("\n".join(result.lines))
    if options.save:
        _save(replace(scenario, faults=result.faults), options.save)
    print(f"seed {scenario.seed}, features {','.join(scenario.features) or 'none'}: {result.digest}")
    _print_violations(result)
    return FOUND if result.violations else 0


def _reduce(scenario: Scenario, options: argparse.Namespace, folder: Path) -> int:
    began, kind = cpu_seconds(), options.reduce
    result = run(scenario, folder)
    if kind not in result.violations:
        _misused(f"seed {scenario.seed} shows no {kind}, but {', '.join(result.violations) or 'nothing'}")
    best, runs = reduced(result, kind, lambda candidate: run(candidate, folder))
    if options.save:
        _save(best.scenario, options.save)
    print(report(best, kind, runs, cpu_seconds() - began, is_whole=options.trace))
    _print_violations(best)
    return FOUND


def _save(scenario: Scenario, path: str) -> None:
    try:
        write_file(Path(path), to_json(scenario))
    except OSError as error:
        _misused(str(error))


def _search(options: argparse.Namespace, folder: Path) -> int:
    allowed, known = features_named(options.features)
    first, status = options.first or 0, 0
    findings, end = Findings(), time.monotonic() + 60 * options.minutes
    try:
        print(f"Searching from seed {first}, for {options.minutes:g} minutes", flush=True)
        for result in results(itertools.count(first), allowed, folder, known=known):
            for kind in findings.add(result):
                print(f"{kind}: seed {result.scenario.seed}, {result.digest}: {result.violations[kind]}", flush=True)
            if time.monotonic() >= end:
                break
    except KeyboardInterrupt:
        print("Interrupted; the figures so far:")
        status = INTERRUPTED
    print(findings.figures())
    for kind, count in sorted(findings.seeds.items()):
        print(f"{kind}: {count} runs, the first with SEED={findings.first[kind].scenario.seed}")
    for name, count in sorted(findings.counts.items()):
        print(f"{count:9,}  {name}")
    drawable = [feature for feature in sorted(allowed) if known or holds(frozenset({feature}))]
    for name in coverage.missing(findings.counts, drawable):
        print(f"    never  {name}")
    for name in coverage.surprises(findings.counts):
        print(f"Reached, although coverage.py says that it cannot be: {name}")
    return status or (FOUND if findings.first else 0)


def _print_violations(result: Result) -> None:
    for kind, problem in result.violations.items():
        print(f"{kind}: {problem}")
        if kind == "ENDLESS":
            print("\n".join(result.lines[-_LAST_LINES:]))


def _number(kind: Callable[[str], float]) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            return kind(text)
        except ValueError:
            _misused(f"{text!r} is no number")

    return read


def _misused(problem: str) -> NoReturn:
    print(f"Error: {problem}", file=sys.stderr)
    sys.exit(MISUSED)


if __name__ == "__main__":
    sys.exit(main())
