"""Random action sets: blueprints with what each call of a step does, deaths of appliers, and cancels."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import strategies as st

from applier_svc import failpoints
from applier_svc.actions.call import Call, FunctionError, Verdict
from tests.action_sets.deaths import died
from tests.action_sets.functions import Step
from tests.action_sets.world import action_set, blueprint, do

PLACES = [name for name in failpoints.ACTION_NAMES if not name.startswith("after_child")]

LARGE = "x" * 300_000
"""More than the outputs of a phase may have."""

WAYS = ["ends", "ends", "ends", "gives nothing", "fails", "is busy", "is slow", "hangs", "emits", "emits and fails"]
RARE_WAYS = ["has a defect", "gives too much", "dies", "dies after its effect"]


@dataclass
class Effects:
    """
    What the calls of one scenario did.

    Attributes:
        calls: How often each key was called.
        done: How often a call with each key had its effect.
        of_step: The step of each key.
    """

    calls: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    of_step: dict[str, str] = field(default_factory=dict)

    def step(self, way: str) -> Step:
        """A step that goes one way."""

        async def run(call: Call) -> Mapping[str, Any]:
            key = call.key.partition("/")[2]
            self.calls[key] += 1
            self.of_step[key] = call.arguments["step"]
            match way:
                case "fails":
                    raise FunctionError("it is broken")
                case "is busy":
                    raise FunctionError("it is busy", is_worth_retry=True)
                case "is slow":
                    await asyncio.sleep(2)
                case "hangs":
                    await asyncio.Event().wait()
                case "emits" | "emits and fails":
                    await call.emit({"out": f"emitted by {call.phase}"})
                    await call.report(50)
                    if way == "emits and fails":
                        raise FunctionError("it is broken", is_worth_retry=True)
                case "has a defect":
                    raise ValueError("a defect")
                case "dies":
                    raise died()
            self.done[key] += 1
            if way == "dies after its effect":
                raise died()
            return {} if way == "gives nothing" else {"out": LARGE if way == "gives too much" else call.phase}

        return run

    def verdict(self, key: str) -> tuple[Verdict, Mapping[str, Any]]:
        """What a function can tell that knows its effects."""
        return (Verdict.DONE, {"out": "told"}) if self.done[key] else (Verdict.NOT_DONE, {})


class Scenario(NamedTuple):
    """
    One random action set.

    Attributes:
        blueprint: Its blueprint.
        action_set: The action set.
        ways: What the calls of each step do, in order; the last one stays.
        deaths: Failpoints at which appliers die, each with the number of times that it is reached before.
        cancel: When it is cancelled, in seconds after it was created; None: it is not.
    """

    blueprint: dict[str, Any]
    action_set: dict[str, Any]
    ways: dict[str, list[str]]
    deaths: list[tuple[str, int]]
    cancel: float | None

    def deaths_hook(self) -> failpoints.Hook:
        """Lets appliers die as far as the action set is concerned."""
        left = list(self.deaths)
        reached = Counter[str]()

        def hook(name: str) -> None:
            place = (name, reached[name])
            reached[name] += 1
            if place in left:
                left.remove(place)
                raise died()

        return hook


@st.composite
def _phases(draw: st.DrawFn, name: str, before: list[str]) -> dict[str, Any]:
    """A phase, after those whose outputs are there under the expressions *before*."""
    function = draw(st.sampled_from(["Do", "Do", "DoOnce", "DoOnceKnown"]))
    fields: dict[str, Any] = {"func": function}
    if function != "Do" and draw(st.booleans()):
        fields["idempotent"] = True
    if function == "Do" or "idempotent" in fields:
        fields["retry"] = {"attempts": draw(st.integers(1, 3)), "backoff": draw(st.sampled_from(["0s", "1s"]))}
    if draw(st.booleans()):
        fields["timeout"] = draw(st.sampled_from(["500ms", "3s"]))
    if draw(st.booleans()) and before:
        fields["value"] = f"{{{{ {draw(st.sampled_from(before))} }}}}"
    if not draw(st.integers(0, 3)):
        fields["if"] = draw(st.sampled_from(["{{ true }}", "{{ false }}", "{{ run.name == 'x' }}", "{{ 1 }}"]))
    return do(name, **fields)


@st.composite
def _actions(draw: st.DrawFn, name: str) -> dict[str, Any]:
    action: dict[str, Any] = {"phases": []}
    before = list[str]()
    for number in range(draw(st.integers(1, 3))):
        phase = draw(_phases(f"{name}{number}", before))
        action["phases"].append(phase)
        output = f"phases.{name}{number}.output.out"
        before.append(f"default({output}, 'none')" if "if" in phase else output)
    if draw(st.booleans()):
        guarded = [each if each.startswith("default") else f"default({each}, 'none')" for each in before]
        action["deferPhase"] = draw(_phases(f"{name}d", guarded))
    if draw(st.booleans()):
        action["outputArtifacts"] = {
            f"made{number}": {"keyValue": {"k": f"{{{{ {draw(st.sampled_from(before))} }}}}"}}
            for number in range(draw(st.integers(1, 2)))
        }
    if draw(st.booleans()):
        action["timeout"] = draw(st.sampled_from(["1s", "10s"]))
    if draw(st.booleans()):
        action |= {"kind": "Stack", "lock": draw(st.booleans())}
    return action


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Random action sets on stacks ``a`` and ``b``."""
    actions: dict[str, Any] = {name: draw(_actions(name)) for name in "abc"[: draw(st.integers(1, 3))]}
    runs = []
    for name in draw(st.lists(st.sampled_from([*actions]), min_size=1, max_size=3)):
        has_object = actions[name].get("kind") == "Stack"
        of_stack = {"object": {"kind": "Stack", "name": draw(st.sampled_from("ab"))}} if has_object else {}
        runs.append({"name": name, **of_stack})
    spec: dict[str, Any] = {"sequential": True} if draw(st.booleans()) else {}
    if not draw(st.integers(0, 3)):
        spec["timeout"] = draw(st.sampled_from(["1s", "5s"]))
    steps = [
        phase["args"]["step"]
        for action in actions.values()
        for phase in (*action["phases"], *([action["deferPhase"]] if "deferPhase" in action else []))
    ]
    ways = st.lists(st.sampled_from([*WAYS, *WAYS, *RARE_WAYS]), min_size=1, max_size=3)
    return Scenario(
        blueprint(**actions),
        action_set(*runs, **spec),
        {step: draw(ways) for step in steps},
        draw(st.lists(st.tuples(st.sampled_from(PLACES), st.integers(0, 3)), max_size=3)),
        draw(st.none() | st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.5, 6.0])),
    )
