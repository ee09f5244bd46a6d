"""Random actors in one organization: clients of stacks that share resources, and a person who edits the platform."""

import json
import random
from collections.abc import Sequence

from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2

from services.core.errors import PkgerError
from tests.apply.packages import an_object, text
from tests.crash.stacks import FINAL, Caller, Shared
from tests.drivers.client import attach, create, delete, detach, update

_REFUSED = an_object("Bucket", "reserved", "_system")
"""An object with a reserved name, which the platform refuses, so that the operation rolls back."""


class Client(Caller):
    """Works on one stack, one request after another."""

    async def begin(self) -> None:
        """Apply the labels and the bucket that all stacks share."""
        labels = [
            an_object("Label", f"{self.stack}-l{each}", f"label {each}", description="equal") for each in range(3)
        ]
        names = [each["metadata"]["name"] for each in labels]
        bucket = an_object("Bucket", f"{self.stack}-b", "raw", self._some(names), description="equal")
        await self.apply(text(*labels, bucket))

    async def work(self, actions: int) -> None:
        """Apply, at once or by a stored plan, and uninstall."""
        async with self.shared.pulse.work():
            for _ in range(actions):
                do = self.rng.choices((self._apply, self._apply_later, self.uninstall), (5, 5, 1))[0]
                await do()
                await self.shared.pulse.beat()

    async def _apply(self) -> None:
        await self.apply(self._package())

    async def _apply_later(self) -> None:
        try:
            plan = await self.shared.case(self.stack).plan(self._package())
        except PkgerError as error:
            self.shared.hear(error, FINAL)
            return
        self.shared.planned[plan.name] = self.shared.person_wrote
        await self.shared.pulse.rest(self.rng.randrange(25))
        await self.apply_plan(plan)

    def _package(self) -> str:
        """A package whose resources mostly equal those of the others, under object names of its own."""
        rng, prefix = self.rng, self.stack
        labels = rng.sample(range(3), rng.randrange(1, 4))
        wanted = [an_object("Label", f"{prefix}-l{each}", f"label {each}", **self._version()) for each in labels]
        names = [each["metadata"]["name"] for each in wanted]
        region = {"type": "constant", "values": ["eu"], **self._version()}
        more = [
            an_object("Bucket", f"{prefix}-b", "raw", self._some(names), **self._version()),
            an_object("Variable", f"{prefix}-v", "region", self._some(names), **region),
            an_object("Dashboard", f"{prefix}-d", "board", self._some(names), **self._version()),
        ]
        wanted += [each for each in more if rng.random() < 0.7]
        return text(*wanted, *([_REFUSED] if rng.random() < 0.15 else []))

    def _some(self, labels: list[str]) -> list[str]:
        return [each for each in labels if self.rng.random() < 0.6]

    def _version(self) -> dict[str, str]:
        return {"description": "different" if self.rng.random() < 0.04 else "equal"}


class Person:
    """
    Edits the platform directly, without pkger.

    Attributes:
        labels: Ids of the person's own labels.
    """

    def __init__(self, shared: Shared, rng: random.Random) -> None:
        self.labels: set[str] = set()
        self._shared = shared
        self._rng = rng
        self._attached: list[tuple[str, str, str]] = []

    async def work(self, edits: int) -> None:
        """Edit, label and delete resources from time to time."""
        for number in range(edits):
            if not await self._shared.pulse.passed(self._rng.randrange(1, 40)):
                return
            found = await self._shared.services.resources()
            others = [each for each in found if each.id not in self.labels]
            if others:
                await self._edit(self._rng.choice(others), found, number)

    async def tidy_up(self) -> None:
        """Detach the labels of stacks that the person attached; stacks could not delete these labels otherwise."""
        for kind, id_, label in self._attached:
            await self._write(detach(kind, id_, label))

    async def _edit(self, found: object_pb2.Resource, all_found: Sequence[object_pb2.Resource], number: int) -> None:
        do = self._rng.choices(("edit", "relabel", "attach", "detach", "delete"), (5, 3, 1, 1, 2))[0]
        labels = [each.id for each in all_found if each.kind == "Label" and each.id not in self.labels]
        self._shared.note(f"person {do}")
        match do:
            case "edit":
                spec = {**json.loads(found.spec_json), "description": f"of a person, {number}"}
                await self._write(update(found.kind, found.id, spec))
            case "relabel" if found.kind != "Label":
                made = await self._write(create("Label", {"name": f"of a person, {number}"}))
                self.labels.add(made.done.id)
                await self._write(attach(found.kind, found.id, made.done.id))
            case "attach" if found.kind != "Label" and labels:
                label = self._rng.choice(labels)
                if label not in found.label_ids:
                    self._attached.append((found.kind, found.id, label))
                    await self._write(attach(found.kind, found.id, label))
            case "detach" if found.label_ids:
                await self._write(detach(found.kind, found.id, self._rng.choice(sorted(found.label_ids))))
            case "delete":
                await self._write(delete(found.kind, found.id))

    async def _write(self, mutation: driver_pb2.Mutation) -> driver_pb2.MutationResult:
        self._shared.person_wrote += 1
        [result] = (await self._shared.services.mutate(mutation)).results
        return result
