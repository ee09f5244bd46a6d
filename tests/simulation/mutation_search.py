"""
Proof that the simulation finds defects: it searches a copy of the code for one defect at a time, put there on purpose.

``make simulate-mutations`` (docs/simulation.md, "Mutations").
"""

import argparse
import importlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.simulation import small_scenarios
from tests.simulation.features import FEATURES
from tests.simulation.mutations import MUTATIONS, PACKAGES, ROOT, Mutation, MutationMisfit, mutated
from tests.simulation.reduce import cpu_seconds, reduced, report
from tests.simulation.running import HarnessBroken, Result, run
from tests.simulation.scenario import Scenario, ScenarioInvalid, read_file, to_json, unwritable, write_file
from tests.simulation.search import Findings, results, template

_MODULE = "tests.simulation.mutation_search"

LONGEST_SEARCH = 900.0
"""Timeout in seconds of the search for one mutation, with its reduction."""

NOT_FOUND, MISUSED, INTERRUPTED = 1, 2, 130
"""Exit status: a mutation was not found or does not fit; wrong arguments; Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Finding:
    """
    The result of one search.

    Attributes:
        kind: The violation that was found; empty: none of the expected kinds.
        problem: The text of the violation.
        seeds: How many runs there were; the last one shows the violation.
        seconds: Duration of the search.
        others: Other kinds of violation that the seeds showed.
        report: The reduced scenario with its trace, for people; empty: it was not reduced.
        scenario: The scenario that shows the violation, as JSON.
    """

    kind: str
    problem: str
    seeds: int
    seconds: float
    others: Sequence[str] = ()
    report: str = ""
    scenario: Mapping[str, Any] | None = None


@contextmanager
def copy_with(mutation: Mutation) -> Iterator[Path]:
    """
    A copy of the services and of the simulation, with the defect of *mutation*.

    Raises:
        MutationMisfit: As ``mutated``.
    """
    text = mutated(mutation)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in (*PACKAGES, "tests/simulation"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "tests/databases.py", copy / "tests")
        (copy / mutation.file).write_text(text, "utf-8")
        yield copy


def search(mutation: Mutation, *, scenario: Path | None = None, is_reduced: bool = False) -> Finding:
    """
    Run seeds with *mutation* until one shows a violation of one of its kinds, or its bound is reached.

    Args:
        mutation: The defect.
        scenario: A file with the only scenario to run, in place of seeds.
        is_reduced: Whether the scenario that shows the violation is reduced.

    Raises:
        MutationMisfit: As ``mutated``.
        HarnessBroken: The mutated code could not be run.
    """
    began = time.monotonic()
    arguments = [f"--kinds={','.join(mutation.kinds)}", f"--features={','.join(mutation.features)}"]
    arguments += [f"--seeds={mutation.seeds}", f"--situation={mutation.situation}"]
    arguments += [f"--scenario={scenario.resolve()}"] if scenario else []
    arguments += ["--reduce"] if is_reduced else []
    with copy_with(mutation) as copy:
        # Folders of PYTHONPATH precede the ones that the editable install adds.
        env = {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'services/gen'}", "PYTHONDONTWRITEBYTECODE": "1"}
        # The temporary files of a child process that is killed are removed with the copy.
        env["TMPDIR"] = str(copy)
        command = [sys.executable, "-m", _MODULE, *arguments, f"--inside={copy}"]
        try:
            done = subprocess.run(
                command, cwd=copy, env=env, capture_output=True, text=True, check=False, timeout=LONGEST_SEARCH
            )
        except subprocess.TimeoutExpired:
            raise HarnessBroken(f"{mutation.name}: the search takes more than {LONGEST_SEARCH:.0f} s") from None
    if done.returncode:
        raise HarnessBroken(f"{mutation.name}: {done.stderr}")
    return Finding(seconds=time.monotonic() - began, **json.loads(done.stdout.splitlines()[-1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Search for the mutations that *arguments* name, or for all; returns the exit status."""
    options = _options(arguments)
    try:
        return _searched(options)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED


def _searched(options: argparse.Namespace) -> int:
    if options.inside:
        _check_origin(options.inside)
        print(json.dumps(_found_inside(options)))
        return 0
    by_name = {mutation.name: mutation for mutation in MUTATIONS}
    if problem := _problem(options, by_name):
        print(f"Error: {problem}", file=sys.stderr)
        return MISUSED
    are_found = [_is_found(by_name[name], options) for name in options.names or by_name]
    return 0 if all(are_found) else NOT_FOUND


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make simulate-mutations", description="Search for one defect at a time.")
    parser.add_argument("names", nargs="*", help="mutations; none: all")
    parser.add_argument("--reduce", action="store_true", help="find the smallest scenario that shows the mutation")
    parser.add_argument("--scenario", type=Path, help="a JSON file: run this scenario, and no seeds")
    parser.add_argument("--save", help="write the scenario that shows the mutation into this file")
    # Only the child process in the copy gets these.
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kinds", default="", help=argparse.SUPPRESS)
    parser.add_argument("--features", default="", help=argparse.SUPPRESS)
    parser.add_argument("--situation", default="", help=argparse.SUPPRESS)
    parser.add_argument("--seeds", type=int, default=1, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _problem(options: argparse.Namespace, known: Collection[str]) -> str:
    """The error about the arguments; empty: there is none."""
    if unknown := [name for name in options.names if name not in known]:
        return f"{unknown[0]!r} is no mutation; they are {', '.join(known)}"
    if (options.reduce or options.scenario or options.save) and len(options.names) != 1:
        return "REDUCE, SCENARIO and SAVE take one mutation: name it with MUTATION"
    try:
        if options.scenario:
            read_file(options.scenario)
    except (ValueError, ScenarioInvalid, OSError) as error:
        return str(error)
    return unwritable(options.save)


def _is_found(mutation: Mutation, options: argparse.Namespace) -> bool:
    """Search for *mutation* and print the result; returns whether it was found."""
    try:
        found = search(mutation, scenario=options.scenario, is_reduced=options.reduce)
    except (MutationMisfit, HarnessBroken) as error:
        print(f"{mutation.name:40} ERROR  {error}", flush=True)
        return False
    others = f"; other violations: {', '.join(found.others)}" if found.others else ""
    if found.report:
        print(found.report)
    if found.kind:
        print(f"{mutation.name:40} {found.kind:10} {found.seeds:4} runs {found.seconds:6.1f} s{others}", flush=True)
    else:
        print(
            f"{mutation.name:40} NOT FOUND  {found.seeds:4} runs {found.seconds:6.1f} s,"
            f" expected {' or '.join(sorted(mutation.kinds))}{others}",
            flush=True,
        )
    if options.save and found.scenario:
        write_file(Path(options.save), found.scenario)
    return bool(found.kind)


def _check_origin(copy: Path) -> None:
    for name in PACKAGES:
        loaded = Path(str(importlib.import_module(name).__file__)).resolve()
        if not loaded.is_relative_to(copy.resolve()):
            raise HarnessBroken(f"{name} comes from {loaded}, and not from {copy}")


def _found_inside(options: argparse.Namespace) -> dict[str, Any]:
    """Run seeds, or a scenario, with the code of the copy; returns the fields of the ``Finding`` but ``seconds``."""
    kinds = options.kinds.split(",")
    features = frozenset(filter(None, options.features.split(","))) or frozenset(FEATURES)
    findings, kind, text = Findings(), "", ""
    with template() as folder:

        def go(scenario: Scenario) -> Result:
            return run(scenario, folder)

        if options.scenario:
            runs: Iterable[Result] = [go(read_file(options.scenario))]
        elif options.situation:
            runs = small_scenarios.results(options.situation, go)
        else:
            runs = results(itertools.count(), features, folder)
        for result in itertools.islice(runs, options.seeds):
            findings.add(result)
            if kind := next((each for each in result.violations if each in kinds), ""):
                break
        best = findings.first.get(kind)
        if best and options.reduce:
            began = cpu_seconds()
            best, count = reduced(best, kind, go)
            text = report(best, kind, count, cpu_seconds() - began)
    return {
        "kind": kind,
        "problem": best.violations[kind] if best else "",
        "seeds": findings.runs,
        "others": sorted(findings.first.keys() - {kind}),
        "report": text,
        "scenario": to_json(replace(best.scenario, faults=best.faults)) if best else None,
    }


if __name__ == "__main__":
    sys.exit(main())
