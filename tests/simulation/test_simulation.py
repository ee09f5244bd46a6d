"""Seeds violate no invariant, reach nearly all situations, and repeat exactly (issue 14)."""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.simulation import coverage
from tests.simulation.drawing import drawn
from tests.simulation.features import FEATURES, KNOWN, holds
from tests.simulation.running import HarnessBroken, run
from tests.simulation.scenario import from_json, to_json
from tests.simulation.search import Findings, results, template

RICH = (
    19,
    20,
    22,
    24,
    25,
    44,
    49,
    59,
    72,
    89,
    101,
    105,
    109,
    115,
    132,
    147,
    177,
    195,
    209,
    213,
    225,
    272,
    289,
    329,
    335,
    337,
    355,
    356,
    421,
    442,
    483,
    486,
    509,
    574,
    749,
    1262,
    1265,
    3097,
    3171,
    3172,
    3192,
    3235,
    3271,
    3289,
    3366,
    3385,
    3434,
    3511,
    3585,
    3607,
    4078,
)
"""Seeds that reach rare situations; the sample misses none but those of ``NOT_IN_SAMPLE``."""

SEEDS = tuple(dict.fromkeys((*RICH, *range(80))))[:60]
"""A fixed list, so that only a commit can make the gate fail."""

NOT_IN_SAMPLE = frozenset(
    {
        "error DEPENDENCY_CYCLE",
        "error REVISION_NOT_FOUND",
        "killed with a step UNDO_UNKNOWN",
        "step UNDO_INTENT -> UNDO_GIVEN_UP",
        "step UNDO_UNKNOWN -> UNDO_GIVEN_UP",
        "step UNDO_UNKNOWN -> UNDO_INTENT",
    }
)
"""Names that the seeds of ``SEEDS`` do not reach. Names are only ever removed from this list."""

REPLAYED = RICH[:8]

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with template() as made:
        yield made


@pytest.mark.timeout(600)
def test_no_invariant_is_violated_and_most_is_reached(folder: Path) -> None:
    """``make simulate SEED=n TRACE=1`` shows the trace of a seed that fails here."""
    findings, violated = Findings(), {}
    for result in results(SEEDS, FEATURES, folder):
        findings.add(result)
        if result.violations:
            violated[result.scenario.seed] = result.violations
    assert violated == {}
    on = [feature for feature in FEATURES if holds(frozenset({feature}))]
    assert set(coverage.missing(findings.counts, on)) <= NOT_IN_SAMPLE
    assert coverage.surprises(findings.counts) == []


def test_lists_of_unreached_names_have_known_names_only() -> None:
    assert set(coverage.names()) >= NOT_IN_SAMPLE | coverage.UNREACHABLE.keys()
    assert not NOT_IN_SAMPLE & coverage.UNREACHABLE.keys()
    assert coverage.EFFECTS.keys() == FEATURES.keys()


@pytest.mark.parametrize("path", sorted((HERE / "found").glob("*.json")), ids=lambda path: path.stem)
def test_a_found_scenario_shows_the_defect_while_it_is_known(path: Path, folder: Path) -> None:
    """The scenario of a defect that was fixed shows no violation."""
    result = run(from_json(json.loads(path.read_text("utf-8"))), folder)
    known = [known for known in KNOWN if known.found == path.stem]
    assert set(result.violations) == {kind for each in known for kind in each.kinds}


def test_each_known_defect_has_its_scenario() -> None:
    for known in KNOWN:
        assert (HERE / "found" / f"{known.found}.json").exists(), known.defect
        assert known.features <= FEATURES.keys(), known.defect


def digests(**environment: str) -> dict[str, str]:
    """The digest of each seed of ``REPLAYED``, computed by a new process."""
    code = (
        "from tests.simulation.test_simulation import *\n"
        "with template() as made:\n"
        "    print(json.dumps({seed: run(drawn(seed, FEATURES), made).digest for seed in REPLAYED}))"
    )
    env = {**os.environ, **environment, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_a_seed_shows_the_same_each_time(folder: Path) -> None:
    """In this process and in new ones with other hash seeds, which finds an order that depends on a set."""
    here = {str(seed): run(drawn(seed, FEATURES), folder).digest for seed in REPLAYED}
    assert digests(PYTHONHASHSEED="1") == here
    assert digests(PYTHONHASHSEED="2") == here


def test_a_scenario_is_the_same_as_json(folder: Path) -> None:
    for seed in REPLAYED:
        scenario = drawn(seed, FEATURES, known=True)
        assert from_json(json.loads(json.dumps(to_json(scenario)))) == scenario


def test_noted_faults_make_the_same_run(folder: Path) -> None:
    """Reduction relies on this (docs/simulation.md)."""
    result = next(found for seed in SEEDS if (found := run(drawn(seed, FEATURES), folder)).faults)
    noted = from_json({**to_json(result.scenario), "faults": result.faults})
    assert run(noted, folder).digest == result.digest


def test_the_simulation_patches_nothing() -> None:
    for path in HERE.glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        imported = {
            name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in ([getattr(node, "module", "")] + [each.name for each in node.names])
        }
        assert "setattr" not in called, path.name
        assert not {name for name in imported if name and "mock" in name.lower()}, path.name
        assert "monkeypatch" not in {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}, path.name


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--seed", "x"], "'x' is no number"),
        (["--reduce", "I3"], "REDUCE takes one run: name its SEED or SCENARIO"),
        (["--seed", "3", "--reduce", "I3"], "seed 3 shows no I3, but nothing"),
        (["--seed", "3", "--save", "/nowhere/seed.json"], "No such file or directory: '/nowhere/seed.json'"),
        (["--features", "kills,earthquake"], "'earthquake' is no feature; they are all, kills, "),
        (["--scenario", "{}"], "version: write 1; None is another format"),
        (["--scenario", '{"version": 2}'], "version: write 1; 2 is another format"),
        (
            ["--scenario", '{"version": 1, "seed": 1, "features": [], "crashes": [{"node": "applier7"}]}'],
            "'applier7' is none",
        ),
        (["--scenario", '{"version": 1, "seed": 1, "features": [], "crash": []}'], "'crash' is none of its fields"),
        (["--scenario", "[" * 100_000], "nested too deeply"),
        (["--scenario", '{"version": 1, "seed": 1, "features": "kills"}'], "scenario.features: 'kills' is no list"),
        (["--scenario", '{"version": 1, "seed": 1, "features": [], "appliers": 0}'], "appliers: 0 is none of 1 to 100"),
        (
            ["--scenario", '{"version": 1, "seed": 1, "features": [], "jumps": [{"at": NaN, "node": "stack"}]}'],
            "scenario.jumps[0].at: nan is none of",
        ),
        (
            [
                "--scenario",
                '{"version": 1, "seed": 1, "features": [], "clients":'
                ' [{"stack": "a", "prefix": "", "actions": []}, {"stack": "a", "prefix": "", "actions": []}]}',
            ],
            "clients: two are called 'a'",
        ),
        (["--minutes", "nan"], "MINUTES: nan is no time"),
        (["--save", "file.json"], "SAVE takes one run"),
    ],
)
def test_an_error_about_arguments_is_one_line(arguments: list[str], problem: str, tmp_path: Path) -> None:
    if arguments[0] == "--scenario":
        (tmp_path / "scenario.json").write_text(arguments[1], "utf-8")
        arguments = ["--scenario", str(tmp_path / "scenario.json")]
    done = command(*arguments)
    assert done.returncode == 2
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1


BROKEN = "The simulation failed, and not what it simulates.\n"


def test_a_run_that_fails_by_itself_is_no_violation(tmp_path: Path) -> None:
    """The databases that each run copies are removed during the search."""
    search = [sys.executable, "-m", "tests.simulation", "--minutes", "2"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(search, cwd=HERE.parents[1], env=env, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout
        assert "Searching from seed 0" in process.stdout.readline()
        for made in tmp_path.glob("*"):
            shutil.rmtree(made, ignore_errors=True)
        errors = process.communicate()[1]
    assert process.returncode == 3, errors
    assert errors.startswith(BROKEN)
    assert "Error: " in errors


# A shell starts what runs in the background with SIGINT ignored, and children inherit that.
INTERRUPTIBLE = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


@contextmanager
def interruptible(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A command in a process group of its own, as at a terminal; the group is killed afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *arguments],
        cwd=HERE.parents[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    limit = threading.Timer(60, os.killpg, (process.pid, signal.SIGKILL))
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("reaches", [os.kill, os.killpg])
def test_ctrl_c_ends_a_search_with_its_figures(reaches: Callable[[int, int], None]) -> None:
    with interruptible("tests.simulation", "--minutes", "2") as process:
        assert process.stdout
        assert "Searching from seed 0" in process.stdout.readline()
        reaches(process.pid, signal.SIGINT)
        figures, problems = process.communicate()
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    assert (process.returncode, problems) == (130, "")
    assert figures.startswith("Interrupted; the figures so far:\n")
    assert " scheduling points, " in figures


def test_ctrl_c_ends_a_search_for_mutations() -> None:
    with interruptible("tests.simulation.mutation_search", "intent_after_effect", "no_seal") as process:
        assert process.stdout
        assert process.stdout.readline().startswith("intent_after_effect ")
        os.killpg(process.pid, signal.SIGINT)
        more, problems = process.communicate()
    assert (process.returncode, more, problems) == (130, "", "Interrupted.\n")


def test_a_search_that_cannot_begin_is_no_violation() -> None:
    """No file may be written, as on a full disk."""
    limited = ["bash", "-c", 'ulimit -f 0; exec "$@"', "bash", sys.executable, "-m", "tests.simulation", "--seed", "3"]
    done = subprocess.run(limited, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(BROKEN)
    assert "No usable temporary directory" in done.stderr


def test_a_run_without_its_databases_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(HarnessBroken, match=r"^seed 3: Traceback (.|\n)*FileNotFoundError: .*nothing"):
        run(drawn(3, FEATURES), tmp_path / "nothing")


def test_a_scenario_from_a_file_is_run_as_its_seed(tmp_path: Path) -> None:
    saved = tmp_path / "scenario.json"
    first = command("--seed", "3", "--save", str(saved))
    again = command("--scenario", str(saved), "--trace")
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert first.stdout.strip() in again.stdout
    assert "all faults stop" in again.stdout
