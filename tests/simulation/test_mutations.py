"""Each mutation fits the current code, and the search finds the quick ones (docs/simulation.md, "Mutations")."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.features import FEATURES
from tests.simulation.mutation_search import main, search
from tests.simulation.mutations import MUTATIONS, PACKAGES, ROOT, Mutation, MutationMisfit, mutated
from tests.simulation.scenario import Action, Client, Item, Scenario, from_json, to_json, write_file

FOUND = Path(__file__).parent / "found"

QUICK = ("no_seal", "rollback_in_order_of_plan")
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


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_quick_mutation_is_found(name: str) -> None:
    mutation = named(name)
    found = search(mutation)
    assert found.kind in mutation.kinds
    assert found.problem


@pytest.mark.parametrize(("old", "count"), [("text that does not occur", 0), ("import", 2)])
def test_a_text_that_does_not_fit_once_is_refused(old: str, count: int) -> None:
    mutation = Mutation("misfit", "stack_svc/rules/leases.py", old, "", frozenset({"I2"}), 1)
    assert (ROOT / mutation.file).read_text("utf-8").count(old) >= count
    with pytest.raises(MutationMisfit, match="and not once"):
        mutated(mutation)


@pytest.mark.slow
def test_a_mutation_without_effect_is_not_found() -> None:
    """A mutation that replaces a text by itself: the search ends at its bound, and finds nothing."""
    found = search(
        Mutation("none", "stack_svc/store/leases.py", "RELEASED = 0\n", "RELEASED = 0\n", frozenset({"I2"}), 2)
    )
    assert (found.kind, found.seeds, list(found.others)) == ("", 2, [])


def named(name: str) -> Mutation:
    [mutation] = [mutation for mutation in MUTATIONS if mutation.name == name]
    return mutation


@pytest.mark.slow
def test_a_scenario_of_a_fixed_defect_shows_it_when_it_is_put_back() -> None:
    """Without the mutation it shows nothing: ``test_a_found_scenario_shows_the_defect_while_it_is_known``."""
    found = search(named("recovery_ends_on_foreign_code"), scenario=FOUND / "recovery_loop_ends_on_a_foreign_code.json")
    assert (found.kind, found.seeds, list(found.others)) == ("LOOP_DEAD", 1, [])


@pytest.mark.slow
def test_the_scenario_of_a_mutation_is_reduced(tmp_path: Path) -> None:
    client = Client("s0", "", (Action("apply", (Item("red"), Item("blue", 2)), pause=1.0),))
    write_file(tmp_path / "scenario.json", to_json(Scenario(3, (), clients=(client,))))
    found = search(named("intent_after_effect"), scenario=tmp_path / "scenario.json", is_reduced=True)
    least = replace(client, actions=(Action("apply", (Item("blue"),)),))
    assert from_json(found.scenario).clients == (least,)
    assert "VIOLATION I1" in found.report
    assert " s of one core: " in found.report.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing"], "'nothing' is no mutation; they are intent_after_effect, "),
        (["--reduce"], "REDUCE, SCENARIO and SAVE take one mutation: name it with MUTATION"),
        (["no_seal", "intent_after_effect", "--save", "x"], "REDUCE, SCENARIO and SAVE take one mutation"),
        (["no_seal", "--scenario", "pyproject.toml"], "Expecting value"),
        (["no_seal", "--scenario", "nowhere.json"], "No such file"),
    ],
)
def test_an_error_about_arguments_is_one_line(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert problem in message
    assert message.count("\n") == 1
