"""Ids that steps find at run time, as earlier steps create and delete resources."""

from collections.abc import Sequence

from services.core.model import Key, Plan, Reference, StepReference


class Ids:
    """Which resource each object key means right now."""

    def __init__(self, plan: Plan) -> None:
        """Start from what the plan knows."""
        self._ids = {entry.key: entry.resource_id for entry in plan.record.entries if entry.resource_id}
        for step in plan.steps:
            if step.key.name and step.resource_id:
                self._ids.setdefault(step.key, step.resource_id)
            if step.label and step.label.name and step.label_id:
                self._ids.setdefault(step.label, step.label_id)
            for reference in (*step.references, *step.old_references):
                if reference.key.name and reference.id:
                    self._ids.setdefault(reference.key, reference.id)

    def get(self, key: Key) -> str:
        """Id of the resource of *key*; empty when there is none."""
        return self._ids.get(key, "")

    def find(self, key: Key | None, known: str) -> str:
        """Id of what a step names, by its *key* where that has a name, else as it is *known*; empty for nothing."""
        if key is None:
            return ""
        return self.get(key) if key.name else known

    def references(self, references: Sequence[StepReference]) -> tuple[Reference, ...]:
        """What *references* stand for now; with an empty id where that does not exist."""
        return tuple(Reference(each.pointer, each.key.kind, self.find(each.key, each.id)) for each in references)

    def known(self) -> set[tuple[str, str]]:
        """Kind and id of all resources that a key means."""
        return {(key.kind, resource_id) for key, resource_id in self._ids.items()}

    def bind(self, key: Key, resource_id: str) -> None:
        """From now on *key* means the resource *resource_id*."""
        self._ids[key] = resource_id

    def forget(self, key: Key) -> None:
        """From now on there is no resource of *key*."""
        self._ids.pop(key, None)
