"""The objects of a selection, as a pure function."""

from planner_svc.export.create_export import GatheredResources, export_selection
from planner_svc.export.inputs import own_names
from planner_svc.export.request import ExportSelection
from planner_svc.export.selection import select
from planner_svc.export.stored_export import stack_package
from services.core.model import InventoryEntry, Key, Origin, Resource, StackRecord, Target
from services.drivers.embedded.kinds import EMBEDDED
from services.kinds.format.canonical import spec_of
from services.kinds.generated_names import generated_name
from services.syntax.writer import YamlWriter


def test_a_name_of_the_stack_that_no_package_can_write_is_another_one_and_a_warning() -> None:
    """Stores have such names from the time before environment values were checked as names."""
    label = Resource("Label", "1", spec_of({"name": "red", "color": "", "description": ""}))
    entry = InventoryEntry(Key("Label", "Not A Name"), "1", Origin.CREATED)
    stack = StackRecord("0" * 16, Target(), "s", 1, (entry,))
    selection = select(ExportSelection(), stack, {("Label", "1"): label}, EMBEDDED)
    own = {("Label", "1"): "Not A Name"}
    exported = export_selection(YamlWriter(), GatheredResources(selection, [label], {}, []), own, EMBEDDED)
    name = generated_name(label)
    assert exported.documents == [
        f"apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata:\n  name: {name}\nspec:\n  name: red\n"
    ]
    assert [warned.text for warned in exported.warnings] == [
        "Label 'red': its name in the stack, 'Not A Name', is not valid in a package (it came from an environment"
        f" value); it is exported as {name!r}"
    ]


def test_the_stored_export_of_a_stack_has_that_name() -> None:
    """Nobody parses it, and under another name it would be another object."""
    label = Resource("Label", "1", spec_of({"name": "red", "color": "", "description": ""}))
    stack = StackRecord("0" * 16, Target(), "s", 1, (InventoryEntry(Key("Label", "Not A Name"), "1", Origin.CREATED),))
    selection = select(ExportSelection(), stack, {("Label", "1"): label}, EMBEDDED)
    exported = stack_package(GatheredResources(selection, [label], {}, []), own_names(stack), EMBEDDED)
    assert [item.key for item in exported.package.objects] == [Key("Label", "Not A Name")]
    assert exported.left_out == {}


def test_an_entry_that_cannot_be_exported_is_a_warning_with_the_reason() -> None:
    entries = [
        InventoryEntry(Key("Label", "gone"), "1", Origin.CREATED),
        InventoryEntry(Key("Rocket", "odd"), "2", Origin.CREATED),
        InventoryEntry(Key("Bucket", "left~3"), "3", Origin.CREATED, is_pending_delete=True),
    ]
    stack = StackRecord("0" * 16, Target(), "s", 1, tuple(entries))
    selection = select(ExportSelection(), stack, {}, EMBEDDED)
    assert [warned.text for warned in selection.warnings] == [
        "Label 'gone' of the stack is left out: its resource is gone",
        "Rocket 'odd' of the stack is left out: packages have no such kind",
    ]
    assert selection.chosen == {}
