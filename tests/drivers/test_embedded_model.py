"""Random batches on the embedded platform, compared with a simple model."""

import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2

from tests.drivers.client import (
    CONTENT_REFUSED,
    NAME_TAKEN,
    NOT_FOUND,
    DriverClient,
    attach,
    create,
    delete,
    detach,
    done,
    reference,
    update,
    written_id,
)
from tests.drivers.platforms import embedded_driver

KINDS = [
    "Label",
    "Bucket",
    "Variable",
    "Task",
    "Dashboard",
    "CheckDeadman",
    "CheckThreshold",
    "NotificationEndpointSlack",
    "NotificationRule",
]
SCOPES = {"CheckDeadman": "check", "CheckThreshold": "check"}
UNIQUE = {"Bucket", "CheckDeadman", "CheckThreshold", "NotificationEndpointSlack"}
NAMES = ["a", "A", " a", "b", "ß", "SS", "ss\u3000", "_a", "", "  "]

Id = tuple[str, str]
Shown = tuple[str, str, dict[str, Any], list[str], list[tuple[str, str, str]]]


@dataclass
class Held:
    spec: dict[str, Any]
    labels: set[str] = field(default_factory=set)
    references: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass
class Model:
    """One organization; every rule is a search through all resources."""

    held: dict[Id, Held] = field(default_factory=dict)
    created: dict[tuple[str, str], str] = field(default_factory=dict)

    def expect(self, mutation: driver_pb2.Mutation, new_id: str) -> Id | int | None:
        """
        Perform *mutation*; a new resource has the id that the platform chose.

        Returns:
            The expected resource, the expected reason of a rejection, or None.
        """
        verb = mutation.WhichOneof("change")
        if verb == "create":
            return self._create(mutation.create, new_id)
        if verb == "update":
            change = mutation.update
            return self._write((change.kind, change.id), change)
        if verb == "delete":
            self._delete((mutation.delete.kind, mutation.delete.id))
        elif verb == "attach":
            return self._attach((mutation.attach.kind, mutation.attach.id), mutation.attach.label_id)
        elif held := self.held.get((mutation.detach.kind, mutation.detach.id)):
            held.labels.discard(mutation.detach.label_id)
        return None

    def listing(self) -> list[Shown]:
        return [self.shown(id_) for id_ in sorted(self.held)]

    def shown(self, id_: Id) -> Shown:
        held = self.held[id_]
        return (*id_, held.spec, sorted(held.labels), held.references)

    def _create(self, change: driver_pb2.CreateResource, new_id: str) -> Id | int:
        if known := self.created.get((change.kind, change.idempotency_key)):
            return (change.kind, known) if (change.kind, known) in self.held else NOT_FOUND
        self.held[change.kind, new_id] = Held({})
        outcome = self._write((change.kind, new_id), change)
        if isinstance(outcome, int):
            del self.held[change.kind, new_id]
        else:
            self.created[change.kind, change.idempotency_key] = new_id
        return outcome

    def _write(self, id_: Id, change: driver_pb2.CreateResource | driver_pb2.UpdateResource) -> Id | int:
        spec = json.loads(change.spec_json)
        kind, name = id_[0], spec["name"]
        if id_ not in self.held:
            return NOT_FOUND
        old = self.held[id_].spec
        if not name or (kind == "Bucket" and (name[0] == "_" or (old and old["schemaType"] != spec["schemaType"]))):
            return CONTENT_REFUSED
        scope = SCOPES.get(kind, kind)
        others = [
            held.spec["name"]
            for other, held in self.held.items()
            if SCOPES.get(other[0], other[0]) == scope and other != id_
        ]
        if kind == "Label" and name.strip().lower() in [other.strip().lower() for other in others]:
            return NAME_TAKEN
        if kind == "Variable" and name.lower() in map(str.lower, others):
            return NAME_TAKEN
        if kind in UNIQUE and name in others:
            return NAME_TAKEN
        references = [(each.pointer, each.kind, each.id) for each in change.references]
        if any((*referred,) not in self.held for _, *referred in references):
            return NOT_FOUND
        self.held[id_].spec = spec
        self.held[id_].references = references
        return id_

    def _delete(self, id_: Id) -> None:
        self.held.pop(id_, None)
        for held in self.held.values():
            held.references = [each for each in held.references if each[1:] != id_]
        if id_[0] == "Label":
            for held in self.held.values():
                held.labels.discard(id_[1])

    def _attach(self, id_: Id, label_id: str) -> int | None:
        if id_[0] == "Label":
            return CONTENT_REFUSED
        if id_ not in self.held or ("Label", label_id) not in self.held:
            return NOT_FOUND
        self.held[id_].labels.add(label_id)
        return None


kinds = st.sampled_from(KINDS)
specs = st.builds(
    lambda name, schema, text: {"name": name, "schemaType": schema, "description": text},
    st.sampled_from(NAMES),
    st.sampled_from(["", "explicit"]),
    st.text(max_size=3),
)
picks = st.integers(0, 30)
"""Indices of the resources made so far; ids are known only at run time."""

references = st.dictionaries(st.sampled_from(["/p", "/q"]), picks, max_size=2)

items = st.one_of(
    st.tuples(st.just("create"), kinds, specs, st.integers(0, 60).map(str), st.just({})),
    st.tuples(st.just("create"), kinds, specs, st.integers(0, 60).map(str), references),
    st.tuples(st.just("update"), picks, specs, references),
    st.tuples(st.just("delete"), picks),
    st.tuples(st.sampled_from(["attach", "detach"]), picks, picks),
    st.tuples(st.sampled_from(["attach", "detach"]), picks, picks),
)
batches = st.lists(st.lists(items, max_size=12), max_size=8)


def to_mutation(item: tuple[Any, ...], made: list[Id]) -> driver_pb2.Mutation:
    """The mutation for *item*; *made* are all ids so far, and a number beyond them is an unknown id."""

    def pick(number: int, candidates: list[Id]) -> Id:
        return candidates[number] if number < len(candidates) else (KINDS[number % len(KINDS)], "00000000deadbeef")

    def refer(referred: dict[str, int]) -> list[object_pb2.Reference]:
        return [reference(pointer, *pick(number, made)) for pointer, number in sorted(referred.items())]

    match item:
        case ("create", kind, spec, key, referred):
            return create(kind, spec, key, refer(referred))
        case ("update", number, spec, referred):
            return update(*pick(number, made), spec, refer(referred))
        case ("delete", number):
            return delete(*pick(number, made))
        case (verb, number, label):
            labels = [id_ for id_ in made if id_[0] == "Label"]
            change = attach if verb == "attach" else detach
            return change(*pick(number, made), pick(label, labels)[1])
    raise AssertionError(item)


def shown(resource: object_pb2.Resource) -> Shown:
    references = [(each.pointer, each.kind, each.id) for each in resource.references]
    spec = json.loads(resource.spec_json)
    assert resource.display_name == spec["name"]
    return resource.kind, resource.id, spec, list(resource.label_ids), references


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[DriverClient]:
    async with embedded_driver(tmp_path) as client:
        yield client


async def check_against_model(driver: DriverClient, batches: list[list[Any]]) -> None:
    """Send *batches* to the platform and to the model; the platform is shared, but the organization is new."""
    org, model, made = uuid.uuid4().hex, Model(), list[Id]()
    for batch in batches:
        mutations = [to_mutation(item, made) for item in batch]
        results = await driver.mutate(*mutations, org=org)
        for mutation, result in zip(mutations, results, strict=True):
            expected = model.expect(mutation, result.done.id or "refused")
            if isinstance(expected, int):
                assert result.rejected.reason == expected
            elif expected is None:
                assert result == done()
            else:
                assert written_id(mutation, result) == expected
                sent = mutation.create.spec_json or mutation.update.spec_json
                assert json.loads(result.done.observed_spec_json or sent) == model.held[expected].spec
                made += [expected] * (expected not in made)
        assert [shown(resource) for resource in await driver.listing(*KINDS, org=org)] == model.listing()
    read = await driver.read(*made, org=org)
    assert [resource is not None for resource in read] == [id_ in model.held for id_ in made]


@given(batches)
async def test_the_platform_does_what_the_model_does(driver: DriverClient, batches: list[list[Any]]) -> None:
    await check_against_model(driver, batches)
