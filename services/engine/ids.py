"""Ids that steps find at run time, as earlier steps create and delete resources."""

from collections.abc import Iterable, Sequence

from services.core.model import Key, Plan, Reference, Step, StepReference, Verb

Subject = tuple[Key, str]
"""What steps are about: an object key, with an id only for a resource that lives beside the one that replaces it."""


class Ids:
    """
    Which resource each object key means right now.

    A key means one resource, but for a replacement that creates first: until the old resource is deleted, both have the
    key. The old one is then known by the key and the id that it has in the plan.
    """

    def __init__(self, plan: Plan) -> None:
        """Start from what the plan knows."""
        self._replaced = _replaced_after_creation(plan.steps)
        self._ids = {entry.key: entry.resource_id for entry in plan.record.entries if entry.resource_id}
        for step in plan.steps:
            self._start(step.key, step.resource_id)
            if step.label:
                self._start(step.label, step.label_id)
            for reference in (*step.references, *step.old_references):
                self._start(reference.key, reference.id)

    def get(self, key: Key) -> str:
        """Id of the resource of *key*, the new one of a replacement; empty when there is none."""
        return self._ids.get(key, "")

    def find(self, key: Key | None, known: str) -> str:
        """Id of what a step names, by its *key* where that has a name, else as it is *known*; empty for nothing."""
        if key is None:
            return ""
        if self._replaced and (key, known) in self._replaced:
            return self._replaced[key, known]
        return self.get(key) if key.name else known

    def subject(self, key: Key, known: str) -> Subject:
        """What is the same for all that names one resource, whatever its id is by now."""
        return (key, known) if self.is_replaced(key, known) or not key.name else (key, "")

    def is_replaced(self, key: Key, known: str) -> bool:
        """Whether *known* is, in the plan, a resource that lives on beside the one that replaces it."""
        return (key, known) in self._replaced

    def references(self, references: Sequence[StepReference]) -> tuple[Reference, ...]:
        """What *references* stand for now; with an empty id where that does not exist."""
        return tuple(Reference(each.pointer, each.key.kind, self.find(each.key, each.id)) for each in references)

    def known(self) -> set[tuple[str, str]]:
        """Kind and id of all resources that a key means."""
        found = {(key.kind, resource_id) for key, resource_id in self._ids.items()}
        return found | {(key.kind, resource_id) for (key, _), resource_id in self._replaced.items() if resource_id}

    def bind(self, key: Key, known: str, resource_id: str) -> None:
        """From now on *key*, or what was *known* in the plan as a replaced resource, means *resource_id*."""
        if self.is_replaced(key, known):
            self._replaced[key, known] = resource_id
        else:
            self._ids[key] = resource_id

    def forget(self, key: Key, known: str) -> None:
        """From now on there is no resource of *key*, or none that was *known* in the plan as a replaced one."""
        if self.is_replaced(key, known):
            self._replaced[key, known] = ""
        else:
            self._ids.pop(key, None)

    def _start(self, key: Key, known: str) -> None:
        if key.name and known and not self.is_replaced(key, known):
            self._ids.setdefault(key, known)


def _replaced_after_creation(steps: Iterable[Step]) -> dict[Subject, str]:
    """The resources that *steps* delete after another one of their key is created, each with its id."""
    created: set[Key] = set()
    replaced: dict[Subject, str] = {}
    for step in steps:
        if step.verb is Verb.CREATE:
            created.add(step.key)
        elif step.verb is Verb.DELETE and step.key in created and step.resource_id:
            replaced[step.key, step.resource_id] = step.resource_id
    return replaced
