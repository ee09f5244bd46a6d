"""A fault stays with its call when calls before it are added or removed."""

from collections.abc import Mapping

import pytest

from tests.simulation.alignment import aligned
from tests.simulation.running import Result
from tests.simulation.scenario import Scenario

BEFORE = (
    "BeginOperation applier0/0",
    "Mutate applier0/0 created Label",
    "AdvanceOperation applier0/0",
    "Mutate applier0/1 created Bucket",
    "AdvanceOperation applier0/1",
    "ListAbandonedOperations applier0/0",
    "BeginOperation applier0/1",
    "Mutate applier0/2 updated Bucket",
    "AdvanceOperation applier0/2",
)


def run_of(calls: tuple[str, ...]) -> Result:
    """A run with *calls*, each with its effect on the platform."""
    lines = []
    for number, text in enumerate(calls):
        method, name, *effect = text.split()
        call, caller = f"{method} {name}", name.partition("/")[0]
        lines.append(f"    1.000000 {number:7d} {caller:10s} calls {call} of peer late")
        if effect:
            lines.append(f"    1.000000 {number:7d} platform   {call} {' '.join(effect)} {number:016x}")
    return Result(Scenario(1, ()), "hash", {}, 1, 1.0, 1, lines=lines)


@pytest.mark.parametrize(
    ("after", "faults", "expected"),
    [
        pytest.param(BEFORE, {"Mutate applier0/2": "late"}, {"Mutate applier0/2": "late"}, id="same"),
        pytest.param(
            ("BeginOperation applier0/0", "Mutate applier0/0 updated Bucket", "AdvanceOperation applier0/0"),
            {"Mutate applier0/2": "late", "AdvanceOperation applier0/2": "lost"},
            {"Mutate applier0/0": "late", "AdvanceOperation applier0/0": "lost"},
            id="first operation dropped",
        ),
        pytest.param(
            tuple(call.replace("applier0", "applier2") for call in BEFORE[2:]),
            {"Mutate applier0/1": "late"},
            {"Mutate applier2/1": "late"},
            id="another applier",
        ),
        pytest.param(
            ("BeginOperation applier0/0", "Mutate applier0/0 deleted Label", "AdvanceOperation applier0/0"),
            {"Mutate applier0/0": "late"},
            {"Mutate applier0/0": "late"},
            id="nearest call of the method",
        ),
        pytest.param(
            (*("ListAbandonedOperations applier0/0",) * 9, *BEFORE),
            {"Mutate applier0/1": "late"},
            {"Mutate applier0/1": "late"},
            id="periodic calls do not count",
        ),
        pytest.param(
            ("GetStack planner/0",), {"Mutate applier0/2": "late", "Describe planner/0": "lost"}, {}, id="not called"
        ),
    ],
)
def test_a_fault_moves_to_the_corresponding_call(
    after: tuple[str, ...], faults: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    assert aligned(faults, run_of(BEFORE), run_of(after)) == expected
