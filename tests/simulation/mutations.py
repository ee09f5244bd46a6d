"""
Proof that the simulation finds defects: one defect at a time is put into a copy of the code and searched for.

``make simulate-mutations`` (docs/simulation.md, Mutations).
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
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.features import FEATURES
from tests.simulation.running import HarnessBroken
from tests.simulation.search import Findings, results, template

_MODULE = "tests.simulation.mutations"

ROOT = Path(__file__).parents[2]
"""The checkout."""

PACKAGES = ("parser_svc", "planner_svc", "applier_svc", "stack_svc", "services")
"""What a mutation may change."""

LONGEST_SEARCH = 900.0
"""Seconds after which the search for one mutation is given up."""

NOT_FOUND, MISUSED = 1, 2
"""Exit status: a mutation was not found or does not fit; something was asked for that there is not."""


class MutationMisfit(Exception):
    """The text of a mutation does not stand exactly once in its file."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """
    One defect.

    Attributes:
        name: What it is called.
        file: The source file that it changes, relative to the checkout.
        old: The text that it replaces; stands exactly once in the file.
        new: The text that it puts there.
        kinds: Kinds of violation, one of which the search has to show.
        seeds: How many seeds the search may take.
        features: What the seeds may switch on; empty: everything.
    """

    name: str
    file: str
    old: str
    new: str
    kinds: frozenset[str]
    seeds: int
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Finding:
    """
    The result of one search.

    Attributes:
        kind: The violation that was found; empty: none of the expected kinds.
        problem: What the violation says.
        seeds: How many seeds were run; the last one shows the violation.
        seconds: How long the search took.
        others: Other kinds of violation that the seeds showed.
    """

    kind: str
    problem: str
    seeds: int
    seconds: float
    others: Sequence[str] = ()


_BATCH = "applier_svc/execution/batch.py"
_INQUIRY = "applier_svc/execution/inquiry.py"
_SENDER = "applier_svc/execution/sender.py"
_LEASE = "applier_svc/operation/lease.py"
_REGISTRY = "applier_svc/operation/registry.py"
_CONCLUSION = "services/engine/conclusion.py"
_PROGRESS = "services/engine/progress.py"
_SCHEDULER = "services/engine/scheduler.py"
_STEP_LIFE = "services/engine/step_life.py"
_PLATFORM = "services/drivers/embedded/sqlite/store.py"
_JOURNAL = "stack_svc/journal.py"
_LEASES = "stack_svc/leases.py"
_PLANS = "stack_svc/plans.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "intent_after_effect",
        _BATCH,
        """\
        await self._intend([effect for effect in effects if effect.number not in self._intended])
        answers = await self._answers(effects, sendings)
""",
        """\
        answers = await self._answers(effects, sendings)
        await self._intend([effect for effect in effects if effect.number not in self._intended])
""",
        frozenset({"I1"}),
        10,
    ),
    Mutation(
        "new_idempotency_key_for_each_request",
        _BATCH,
        'key = f"{exchange.operation}/{{}}/{self._order.direction.lower()}"',
        'key = f"{exchange.operation}-{loop_time()}/{{}}/{self._order.direction.lower()}"',
        frozenset({"I1"}),
        10,
    ),
    Mutation(
        "no_seal",
        _SCHEDULER,
        "if not progress.sealed and any(effect.seals for effect in effects):",
        "if False:",
        frozenset({"I6"}),
        10,
    ),
    Mutation(
        "created_resources_not_recorded",
        _CONCLUSION,
        "if resource_id := ids.get(entry.key):",
        "if entry.resource_id and (resource_id := ids.get(entry.key)):",
        frozenset({"I3"}),
        10,
    ),
    Mutation(
        "journal_token_not_compared",
        _JOURNAL,
        """\
    if operation.token != token:
        raise LeaseLost(operation.stack, token)
    return operation, leases.check(tx.leases.of(operation.stack), operation.stack, token, now), now
""",
        """\
    return operation, leases.check(tx.leases.of(operation.stack), operation.stack, operation.token, now), now
""",
        frozenset({"I2"}),
        50,
        frozenset({"stops", "no_fence", "search"}),
    ),
    Mutation(
        "lease_given_twice",
        _LEASES,
        "return lease.expires < now or lease.expires > now + lease.ttl",
        "return True",
        frozenset({"I2"}),
        50,
    ),
    Mutation(
        "platform_takes_lower_token",
        _PLATFORM,
        "if row and row[0] > fence.token:",
        "if False:",
        frozenset({"FORGOTTEN", "CONTENT", "I3", "LEFT_OVER", "GHOST"}),
        150,
        frozenset({"very_late", "kills", "search"}),
    ),
    Mutation(
        "lease_not_checked_before_write",
        _LEASE,
        "        needed = seconds + self._timeouts.margin\n",
        "        return driver_pb2.Fence(scope=self.stack.id, token=self._token)\n",
        frozenset({"I1"}),
        200,
        frozenset({"stops", "no_fence", "search"}),
    ),
    Mutation(
        "rollback_in_order_of_plan",
        _SCHEDULER,
        "groupby(reversed(ready), key=_stage)",
        "groupby(ready, key=_stage)",
        frozenset({"ORDER"}),
        100,
    ),
    Mutation(
        "updates_not_rolled_back",
        _SCHEDULER,
        "return outcome is not None and effect.is_to_be_undone(outcome) and not progress.stays(effect.number)",
        "return (\n"
        "        outcome is not None\n"
        "        and effect.is_to_be_undone(outcome)\n"
        "        and not progress.stays(effect.number)\n"
        '        and effect.step.verb.value != "update"\n'
        "    )",
        frozenset({"ORDER", "CONTENT"}),
        100,
    ),
    Mutation(
        "open_intent_counts_as_not_sent",
        _PROGRESS,
        "    for record in records:\n        progress._know(record)\n",
        "    for record in records:\n"
        "        if record.state is StepState.INTENT:\n"
        "            continue\n"
        "        progress._know(record)\n",
        frozenset({"I3"}),
        50,
    ),
    Mutation(
        "no_answer_counts_as_refused",
        _SENDER,
        """\
            return [Unknown(self._secrets.masked(str(error))) for _ in effects]
        except grpc.aio.AioRpcError as error:
            problem = self._secrets.masked(str(error.details()))
            return [Unknown(f"the driver failed: {problem}") for _ in effects]
""",
        """\
            return [Failed(self._secrets.masked(str(error))) for _ in effects]
        except grpc.aio.AioRpcError as error:
            problem = self._secrets.masked(str(error.details()))
            return [Failed(f"the driver failed: {problem}") for _ in effects]
""",
        frozenset({"I3"}),
        50,
        frozenset({"net", "peer_kills"}),
    ),
    Mutation(
        "no_wait_for_settle",
        _INQUIRY,
        "await asyncio.sleep(max(times) + self._timeouts.settle - loop_time())",
        "await asyncio.sleep(0)",
        frozenset({"I3"}),
        100,
        frozenset({"late", "search"}),
    ),
    Mutation(
        "plan_used_twice",
        _PLANS,
        "    if plan.operation:\n        raise PlanUsed(plan.name, plan.operation)\n",
        "",
        frozenset({"I5"}),
        100,
    ),
    Mutation(
        "failed_undo_counts_as_done",
        _STEP_LIFE,
        "Direction.UNDO: (StepState.UNDONE, StepState.UNDO_FAILED, StepState.UNDO_UNKNOWN),",
        "Direction.UNDO: (StepState.UNDONE, StepState.UNDONE, StepState.UNDO_UNKNOWN),",
        frozenset({"CONTENT", "GHOST"}),
        300,
        frozenset({"reject"}),
    ),
    Mutation(
        "recovery_ends_on_foreign_code",
        _REGISTRY,
        "except (PkgerError, grpc.aio.AioRpcError) as error:",
        "except PkgerError as error:",
        frozenset({"LOOP_DEAD"}),
        300,
        frozenset({"codes", "kills", "stops"}),
    ),
)
"""All defects; those that are mended in the engine are put back here, with the bound that found them."""


def mutated(mutation: Mutation) -> str:
    """
    The source file of *mutation* with its defect.

    Raises:
        MutationMisfit: The text does not stand there exactly once.
    """
    text = (ROOT / mutation.file).read_text("utf-8")
    if (count := text.count(mutation.old)) != 1:
        raise MutationMisfit(f"{mutation.name}: its text stands {count} times in {mutation.file}, and not once")
    return text.replace(mutation.old, mutation.new)


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
        (copy / mutation.file).write_text(text, "utf-8")
        yield copy


def search(mutation: Mutation) -> Finding:
    """
    Run seeds with *mutation* until one shows a violation of one of its kinds, or its bound is reached.

    Raises:
        MutationMisfit: As ``mutated``.
        HarnessBroken: The mutated code could not be run.
    """
    began = time.monotonic()
    arguments = [f"--kinds={','.join(mutation.kinds)}", f"--features={','.join(mutation.features)}"]
    with copy_with(mutation) as copy:
        # Folders of PYTHONPATH come before those that the editable install adds.
        env = {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{copy / 'services/gen'}", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", _MODULE, *arguments, f"--seeds={mutation.seeds}", f"--inside={copy}"]
        try:
            done = subprocess.run(
                command, cwd=copy, env=env, capture_output=True, text=True, check=False, timeout=LONGEST_SEARCH
            )
        except subprocess.TimeoutExpired:
            raise HarnessBroken(f"{mutation.name}: the search takes more than {LONGEST_SEARCH:.0f} s") from None
    if done.returncode:
        raise HarnessBroken(f"{mutation.name}: {done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Finding(found["kind"], found["problem"], found["seeds"], time.monotonic() - began, found["others"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Search for the mutations that *arguments* name, or for all; the exit status."""
    parser = argparse.ArgumentParser(prog="make simulate-mutations", description="Search for one defect at a time.")
    parser.add_argument("names", nargs="*", help="mutations; none: all")
    # A child process in the copy is called with these.
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kinds", default="", help=argparse.SUPPRESS)
    parser.add_argument("--features", default="", help=argparse.SUPPRESS)
    parser.add_argument("--seeds", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        features = frozenset(filter(None, options.features.split(","))) or frozenset(FEATURES)
        _search_inside(options.inside, frozenset(options.kinds.split(",")), features, options.seeds)
        return 0
    by_name = {mutation.name: mutation for mutation in MUTATIONS}
    if unknown := [name for name in options.names if name not in by_name]:
        print(f"Error: {unknown[0]!r} is no mutation; they are {', '.join(by_name)}", file=sys.stderr)
        return MISUSED
    are_found = [_tell(by_name[name]) for name in options.names or by_name]
    return 0 if all(are_found) else NOT_FOUND


def _tell(mutation: Mutation) -> bool:
    """Search for *mutation* and print the result; whether it was found."""
    try:
        found = search(mutation)
    except (MutationMisfit, HarnessBroken) as error:
        print(f"{mutation.name:40} ERROR  {error}", flush=True)
        return False
    others = f"; other violations: {', '.join(found.others)}" if found.others else ""
    if found.kind:
        print(f"{mutation.name:40} {found.kind:10} {found.seeds:4} seeds {found.seconds:6.1f} s{others}", flush=True)
    else:
        print(
            f"{mutation.name:40} NOT FOUND  {found.seeds:4} seeds {found.seconds:6.1f} s,"
            f" expected {' or '.join(sorted(mutation.kinds))}{others}",
            flush=True,
        )
    return bool(found.kind)


def _search_inside(copy: Path, kinds: Collection[str], features: Collection[str], seeds: int) -> None:
    """Run seeds with the code of *copy*, and print the result as JSON."""
    for name in PACKAGES:
        loaded = Path(str(importlib.import_module(name).__file__)).resolve()
        if not loaded.is_relative_to(copy.resolve()):
            raise HarnessBroken(f"{name} comes from {loaded}, and not from {copy}")
    findings, kind = Findings(), ""
    with template() as folder:
        for result in itertools.islice(results(itertools.count(), features, folder), seeds):
            findings.add(result)
            if kind := next((each for each in result.violations if each in kinds), ""):
                break
    found = {
        "kind": kind,
        "problem": findings.first[kind].violations[kind] if kind else "",
        "seeds": findings.runs,
        "others": sorted(findings.first.keys() - {kind}),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
