"""Ids of resources at run time: they change as steps create and delete resources."""

from collections.abc import Iterable, Sequence

from services.core.model import Key, Plan, Reference, Step, StepReference, Verb

Subject = tuple[Key, str]
"""The subject of a step: an object key, with an id only for a resource that exists beside its replacement."""


class ResourceIds:
    """
    The resource that each object key identifies now.

    A key identifies one resource, except during a replacement that creates first. Until the old resource is deleted,
    both have the key. The old one is then identified by the key and its id in the plan.
    """

    def __init__(self, plan: Plan) -> None:
        """Start from the ids in *plan*."""
        self._replaced = _replaced_after_creation(plan.steps)
        self._ids = {entry.key: entry.resource_id for entry in plan.record.entries if entry.resource_id}
        for step in plan.steps:
            self._start(step.key, step.resource_id)
            if step.label:
                self._start(step.label, step.label_id)
            for reference in (*step.references, *step.old_references):
                self._start(reference.key, reference.id)

    def get(self, key: Key) -> str:
        """Id of the resource of *key*, in a replacement the new one; empty when there is none."""
        return self._ids.get(key, "")

    def find(self, key: Key | None, planned_id: str) -> str:
        """Id of the resource of *key*, or *planned_id*, the id in the plan, if the key has no name; empty for none."""
        if key is None:
            return ""
        if self._replaced and (key, planned_id) in self._replaced:
            return self._replaced[key, planned_id]
        return self.get(key) if key.name else planned_id

    def subject(self, key: Key, planned_id: str) -> Subject:
        """The subject: it is equal for all steps about one resource, whatever its id is now."""
        return (key, planned_id) if self.is_replaced(key, planned_id) or not key.name else (key, "")

    def is_replaced(self, key: Key, planned_id: str) -> bool:
        """Whether *planned_id* is the id, in the plan, of a resource that exists beside its replacement."""
        return (key, planned_id) in self._replaced

    def references(self, references: Sequence[StepReference]) -> tuple[Reference, ...]:
        """The resources of *references* now; the id is empty where one does not exist."""
        return tuple(Reference(each.pointer, each.key.kind, self.find(each.key, each.id)) for each in references)

    def all_resources(self) -> set[tuple[str, str]]:
        """Kind and id of all resources that a key identifies."""
        resources = {(key.kind, resource_id) for key, resource_id in self._ids.items()}
        return resources | {(key.kind, resource_id) for (key, _), resource_id in self._replaced.items() if resource_id}

    def bind(self, key: Key, planned_id: str, resource_id: str) -> None:
        """Set the id of *key*, or of the replaced resource with the id *planned_id* in the plan, to *resource_id*."""
        if self.is_replaced(key, planned_id):
            self._replaced[key, planned_id] = resource_id
        else:
            self._ids[key] = resource_id

    def forget(self, key: Key, planned_id: str) -> None:
        """Remove the id of *key*, or of the replaced resource that has the id *planned_id* in the plan."""
        if self.is_replaced(key, planned_id):
            self._replaced[key, planned_id] = ""
        else:
            self._ids.pop(key, None)

    def _start(self, key: Key, planned_id: str) -> None:
        if key.name and planned_id and not self.is_replaced(key, planned_id):
            self._ids.setdefault(key, planned_id)


def _replaced_after_creation(steps: Iterable[Step]) -> dict[Subject, str]:
    """The resources that *steps* delete after the creation of another one with their key, each with its id."""
    created: set[Key] = set()
    replaced: dict[Subject, str] = {}
    for step in steps:
        if step.verb is Verb.CREATE:
            created.add(step.key)
        elif step.verb is Verb.DELETE and step.key in created and step.resource_id:
            replaced[step.key, step.resource_id] = step.resource_id
    return replaced
