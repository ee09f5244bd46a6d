"""What a plan relies on without a step (docs/reference/engine.md, "Claims")."""

from services.core.model import Adoption, InventoryEntry, Key, Origin, Plan, RecordChanges, Resource, Target, Use
from services.engine.assumptions import assumed_resources, broken_assumptions
from services.kinds.format.canonical import spec_of

BUCKET, LABEL = Key("Bucket", "b"), Key("Label", "l")


def a_plan(*uses: Use, adopts: bool = False) -> Plan:
    """A plan that uses, or adopts, the bucket 1, with the label 2 in its record."""
    entries = (InventoryEntry(BUCKET, "1", Origin.SHARED, (LABEL,)), InventoryEntry(LABEL, "2", Origin.SHARED))
    return Plan(
        target=Target("embedded", "default"),
        stack_id="s",
        base_generation=0,
        stages=(),
        steps=(),
        record=RecordChanges(entries),
        no_change=False,
        adoptions=(Adoption(BUCKET, "Bucket", "1", "raw"),) if adopts else (),
        uses=uses,
    )


def held(*label_ids: str) -> dict[tuple[str, str], Resource]:
    return {("Bucket", "1"): Resource("Bucket", "1", spec_of({"name": "raw"}), label_ids)}


def test_only_attached_labels_and_adoptions_are_relied_on() -> None:
    # The store itself guards a resource that another stack owns.
    assert assumed_resources(a_plan(Use(BUCKET, "Bucket", "1"))) == []
    assert assumed_resources(a_plan(Use(BUCKET, "Bucket", "1", "2"), Use(BUCKET, "Bucket", "1", "3"))) == [
        ("Bucket", "1")
    ]
    assert assumed_resources(a_plan(adopts=True)) == [("Bucket", "1")]


def test_nothing_is_lost() -> None:
    plan = a_plan(Use(BUCKET, "Bucket", "1", "2"), adopts=True)
    assert broken_assumptions(plan, held("2", "9")) == []


def test_what_is_lost_has_one_sentence_for_each_resource() -> None:
    plan = a_plan(Use(BUCKET, "Bucket", "1", "2"), Use(BUCKET, "Bucket", "1", "3"), adopts=True)
    assert broken_assumptions(plan, held()) == ["Bucket 'b' lost Label 'l'"]
    assert broken_assumptions(plan, held("2")) == ["Bucket 'b' lost Label resource 3"]
    assert broken_assumptions(plan, {}) == ["Bucket 'b' is gone"]
