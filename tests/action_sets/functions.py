"""Functions of tests: what a call does is a script by the name of its step."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from applier_svc.actions.call import Call, Function, FunctionError, FunctionTable, Verdict
from applier_svc.actions.functions.table import PRODUCT_FUNCTIONS
from services.actions.signatures import Argument, ArgumentType, Effect, Recovery, Signature

Step = Callable[[Call], Awaitable[Mapping[str, Any]]]


@dataclass
class Script:
    """
    What the calls of steps do.

    Attributes:
        steps: What the next calls of each step do, in order; the last one stays.
        calls: The step and the key of each call, in order.
        seen: The arguments of each call.
        checked: The verdict of each key, for functions that can tell.
        verdict: Gives the verdict of a key instead, if it is set.
        started: Set when a step is called, by its name.
    """

    steps: dict[str, list[Step]] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    seen: list[Mapping[str, Any]] = field(default_factory=list)
    checked: dict[str, tuple[Verdict, Mapping[str, Any]]] = field(default_factory=dict)
    verdict: Callable[[str], tuple[Verdict, Mapping[str, Any]]] | None = None
    started: dict[str, asyncio.Event] = field(default_factory=dict)

    def does(self, step: str, *behaviours: Step) -> None:
        """Say what the next calls of *step* do."""
        self.steps[step] = list(behaviours)

    def begun(self, step: str) -> asyncio.Event:
        """An event that is set when *step* is called."""
        return self.started.setdefault(step, asyncio.Event())

    async def run(self, call: Call) -> Mapping[str, Any]:
        """Run one call."""
        step = call.arguments["step"]
        self.calls.append((step, call.key.partition("/")[2]))
        self.seen.append(call.arguments)
        self.begun(step).set()
        behaviours = self.steps.get(step, [])
        if not behaviours:
            return {"out": step}
        behaviour = behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
        return await behaviour(call)

    async def check(self, key: str) -> tuple[Verdict, Mapping[str, Any]]:
        """Tell of an interrupted call."""
        place = key.partition("/")[2]
        return self.verdict(place) if self.verdict else self.checked.get(place, (Verdict.UNKNOWN, {}))

    def table(self) -> FunctionTable:
        """The functions of the product, with those of tests."""
        return with_product(
            Function(signature_of("Do", Recovery.RERUN), self.run),
            Function(signature_of("DoOnce", Recovery.ONCE), self.run),
            Function(signature_of("DoOnceKnown", Recovery.ONCE), self.run, self.check),
        )


def with_product(*functions: Function) -> FunctionTable:
    """The functions of the product, and *functions*."""
    signatures = PRODUCT_FUNCTIONS.signatures.all()
    product = [PRODUCT_FUNCTIONS.find(each.name, each.version) for each in signatures]
    return FunctionTable([*(each for each in product if each), *functions])


def signature_of(name: str, recovery: Recovery) -> Signature:
    """The signature of a function of tests."""
    return Signature(
        name,
        1,
        (
            Argument("step", ArgumentType.STRING, required=True),
            Argument("value", ArgumentType.ANY),
            Argument("secret", ArgumentType.STRING, takes_secrets=True),
        ),
        ("out",),
        Effect.OUTSIDE,
        recovery,
    )


def fails(message: str = "no", **more: Any) -> Step:
    """A step that fails."""

    async def step(call: Call) -> Mapping[str, Any]:
        raise FunctionError(message, **more)

    return step


def gives(**outputs: Any) -> Step:
    """A step that has *outputs*."""

    async def step(call: Call) -> Mapping[str, Any]:
        return outputs

    return step


def waits_for(event: asyncio.Event) -> Step:
    """A step that ends when *event* is set."""

    async def step(call: Call) -> Mapping[str, Any]:
        await event.wait()
        return {"out": "waited"}

    return step
