"""Ids that steps find at run time, as earlier steps create and delete resources."""

from services.core.model import Key, Plan, Reference, Step, Verb


class Ids:
    """Which resource each object key means right now."""

    def __init__(self, plan: Plan) -> None:
        """Start from what the plan knows."""
        self._ids = {entry.key: entry.remote_id for entry in plan.inventory if entry.remote_id}
        for step in plan.steps:
            if step.key.name and step.remote_id:
                self._ids.setdefault(step.key, step.remote_id)
            if step.label and step.label.name and step.label_id:
                self._ids.setdefault(step.label, step.label_id)
            for reference in (*step.references, *step.old_references):
                if reference.key.name and reference.id:
                    self._ids.setdefault(reference.key, reference.id)

    def of_resource(self, step: Step) -> str:
        """
        Id of the resource that *step* is about; empty for a create and while it does not exist.

        That of a secret is its key.
        """
        if step.is_secret:
            return step.key.name
        if step.verb is Verb.CREATE:
            return ""
        return self.get(step.key) if step.key.name else step.remote_id

    def of_label(self, step: Step) -> str:
        """Id of the label that *step* attaches or detaches; empty when it does not exist, or there is none."""
        if step.label is None:
            return ""
        return self.get(step.label) if step.label.name else step.label_id

    def of_references(self, step: Step) -> list[Reference]:
        """What *step* is to make its resource refer to; with an empty id where that does not exist."""
        return [
            Reference(each.pointer, each.key.kind, self.get(each.key) if each.key.name else each.id)
            for each in step.references
        ]

    def get(self, key: Key) -> str:
        """Id of the resource of *key*; empty when there is none."""
        return self._ids.get(key, "")

    def known(self) -> set[tuple[str, str]]:
        """Kind and id of all resources that a key means."""
        return {(key.kind, remote_id) for key, remote_id in self._ids.items()}

    def note(self, step: Step, remote_id: str) -> None:
        """Learn from *step*, which took effect on the resource *remote_id*."""
        if step.verb is Verb.CREATE:
            self._ids[step.key] = remote_id
        elif step.verb is Verb.DELETE:
            self._ids.pop(step.key, None)
