"""Each mutation fits the code as it is, and the quick ones are found (docs/simulation.md, Mutations)."""

import subprocess
import sys

import pytest

from tests.simulation.features import FEATURES
from tests.simulation.mutation_search import search
from tests.simulation.mutations import MUTATIONS, PACKAGES, ROOT, Mutation, MutationMisfit, mutated

QUICK = ("intent_after_effect", "no_seal", "rollback_in_order_of_plan")
"""Found by the first seed."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_exactly_once(mutation: Mutation) -> None:
    compile(mutated(mutation), mutation.file, "exec")
    assert mutation.file.split("/")[0] in PACKAGES
    assert mutation.kinds
    assert mutation.seeds > 0
    assert mutation.features <= FEATURES.keys()


def test_each_mutation_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_mutation_is_found(name: str) -> None:
    [mutation] = [mutation for mutation in MUTATIONS if mutation.name == name]
    found = search(mutation)
    assert found.kind in mutation.kinds
    assert found.problem


@pytest.mark.parametrize(("old", "count"), [("no such text stands there", 0), ("import", 2)])
def test_a_text_that_does_not_fit_once_is_refused(old: str, count: int) -> None:
    mutation = Mutation("misfit", "stack_svc/leases.py", old, "", frozenset({"I2"}), 1)
    assert (ROOT / mutation.file).read_text("utf-8").count(old) >= count
    with pytest.raises(MutationMisfit, match="and not once"):
        mutated(mutation)


def test_a_mutation_without_effect_is_not_found() -> None:
    """The same text again: the search ends at its bound, and finds nothing."""
    found = search(
        Mutation("none", "stack_svc/leases.py", "GIVEN_BACK = 0\n", "GIVEN_BACK = 0\n", frozenset({"I2"}), 2)
    )
    assert (found.kind, found.seeds, list(found.others)) == ("", 2, [])


def test_an_unknown_name_is_one_line() -> None:
    command = [sys.executable, "-m", "tests.simulation.mutation_search", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'nothing' is no mutation; they are intent_after_effect, " in done.stderr
    assert done.stderr.count("\n") == 1
