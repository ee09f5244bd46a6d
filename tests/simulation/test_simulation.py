"""Seeds violate no invariant, reach nearly all situations, and give the same run each time (docs/simulation.md)."""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.samples import rare, slow
from tests.simulation import coverage
from tests.simulation.__main__ import main
from tests.simulation.drawing import drawn
from tests.simulation.features import FEATURES, KNOWN, holds
from tests.simulation.package_pool import POOL
from tests.simulation.running import HarnessBroken, run
from tests.simulation.scenario import PACKAGES, from_json, to_json

SAMPLE = (
    165,
    3434,
    3585,
    5318,
    5554,
    5555,
    5588,
    5629,
    5641,
    5664,
    10036,
    10158,
    10192,
    10200,
    10235,
    10401,
    20075,
    20169,
    20204,
    30002,
    50265,
    50395,
    60030,
    60042,
    80382,
    81071,
    90259,
    100375,
)
"""
A fixed list, so that only a commit can make the gate fail. Together they reach all names of the coverage, but for those
of ``NOT_IN_SAMPLE``.
"""

MORE = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    19,
    44,
    49,
    101,
    105,
    132,
    147,
    213,
    225,
    289,
    329,
    337,
    356,
    1262,
    1265,
    3097,
    3171,
    3192,
    3235,
    3271,
    3289,
    3366,
    3385,
    3607,
)
"""Seeds that reach rare situations, too. Every third runs on each landing."""

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
"""Names that the seeds of ``SAMPLE`` do not reach. Names are only ever removed from this list."""

REPLAYED = (3585,)
"""A seed whose run is short and meets faults of calls."""

REPLAYED_AS_WELL = (7, 105, 272)

HERE = Path(__file__).parent


def counts_of_seed(seed: int, folder: Path) -> Counter[str]:
    """What a seed reaches; ``make simulate SEED=n TRACE=1`` shows the trace of a seed that fails here."""
    result = run(drawn(seed, FEATURES), folder)
    assert result.violations == {}
    assert coverage.surprises(result.counts) == []
    return result.counts


@pytest.mark.parametrize("seed", SAMPLE)
def test_no_invariant_is_violated_and_most_is_reached(
    seed: int, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The last seed that ends checks what all have reached: each writes its names into a folder of the whole run."""
    counts = counts_of_seed(seed, folder)
    reached = shared_folder(tmp_path_factory) / "reached"
    reached.mkdir(exist_ok=True)
    # Not written in place: another process may read it.
    (reached / f"{seed}.part").write_text(json.dumps(counts), "utf-8")
    (reached / f"{seed}.part").rename(reached / f"{seed}.json")
    found = list(reached.glob("*.json"))
    if len(found) == len(SAMPLE):
        total: Counter[str] = sum((Counter(json.loads(each.read_text("utf-8"))) for each in found), Counter())
        on = [feature for feature in FEATURES if holds(frozenset({feature}))]
        assert set(coverage.missing(total, on)) <= NOT_IN_SAMPLE


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder of this run of the tests, which all of its processes share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.mark.parametrize("seed", [rare(seed) if number % 3 else slow(seed) for number, seed in enumerate(MORE)])
def test_no_invariant_is_violated_by_more_seeds(seed: int, folder: Path) -> None:
    counts_of_seed(seed, folder)


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


def test_all_packages_of_scenarios_are_published() -> None:
    assert {name: tuple(versions) for name, versions in POOL.items()} == PACKAGES


def test_each_known_defect_has_its_scenario() -> None:
    for known in KNOWN:
        assert (HERE / "found" / f"{known.found}.json").exists(), known.defect
        assert known.features <= FEATURES.keys(), known.defect


def digests(seeds: Sequence[int], hash_seed: str) -> dict[str, str]:
    """The digest of each seed, computed by a new process."""
    code = (
        "import json, sys\n"
        "from tests.simulation.drawing import drawn\n"
        "from tests.simulation.features import FEATURES\n"
        "from tests.simulation.running import run\n"
        "from tests.simulation.search import template\n"
        "with template() as made:\n"
        "    print(json.dumps({seed: run(drawn(int(seed), FEATURES), made).digest for seed in sys.argv[1:]}))"
    )
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(HERE.parents[1])}
    command = [sys.executable, "-c", code, *map(str, seeds)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("seeds", "hash_seed"),
    [
        (REPLAYED, "1"),
        pytest.param(REPLAYED_AS_WELL, "2", marks=pytest.mark.slow),
    ],
)
def test_a_seed_shows_the_same_each_time(seeds: Sequence[int], hash_seed: str, folder: Path) -> None:
    """In this process and in a new one with another hash seed, which finds an order that depends on a set."""
    here = {str(seed): run(drawn(seed, FEATURES), folder).digest for seed in seeds}
    assert digests(seeds, hash_seed) == here


def test_a_scenario_is_the_same_as_json(folder: Path) -> None:
    for seed in (*SAMPLE, *MORE):
        scenario = drawn(seed, FEATURES, known=True)
        assert from_json(json.loads(json.dumps(to_json(scenario)))) == scenario


def test_noted_faults_make_the_same_run(folder: Path) -> None:
    """Reduction relies on this (docs/simulation.md)."""
    result = run(drawn(REPLAYED[0], FEATURES), folder)
    assert result.faults
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
        (
            [
                "--scenario",
                '{"version": 1, "seed": 1, "features": [], "clients":'
                ' [{"stack": "packages", "prefix": "", "actions": [{"do": "change"}]}]}',
            ],
            "actions.packages: there are no changes",
        ),
        (
            [
                "--scenario",
                '{"version": 1, "seed": 1, "features": [], "clients": [{"stack": "packages", "prefix": "", "actions":'
                ' [{"do": "change", "packages": [{"do": "install", "name": "base", "version": "7.0.0"}]}]}]}',
            ],
            "actions.packages.version: '7.0.0' is none of",
        ),
        (["--minutes", "nan"], "MINUTES: nan is no time"),
        (["--save", "file.json"], "SAVE takes one run"),
    ],
)
def test_an_error_about_arguments_is_one_line(
    arguments: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if arguments[0] == "--scenario":
        (tmp_path / "scenario.json").write_text(arguments[1], "utf-8")
        arguments = ["--scenario", str(tmp_path / "scenario.json")]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert problem in errors
    assert errors.count("\n") == 1


BROKEN = "The simulation failed, and not what it simulates.\n"


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_ctrl_c_ends_a_search_for_mutations() -> None:
    with interruptible("tests.simulation.mutation_search", "intent_after_effect", "no_seal") as process:
        assert process.stdout
        assert process.stdout.readline().startswith("intent_after_effect ")
        os.killpg(process.pid, signal.SIGINT)
        more, problems = process.communicate()
    assert (process.returncode, more, problems) == (130, "", "Interrupted.\n")


@pytest.mark.slow
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


def test_a_scenario_from_a_file_is_run_as_its_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "scenario.json"
    assert main(["--seed", "3", "--save", str(saved)]) == 0
    first = capsys.readouterr().out
    assert main(["--scenario", str(saved), "--trace"]) == 0
    again = capsys.readouterr().out
    assert first.strip() in again
    assert "all faults stop" in again
