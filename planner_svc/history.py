"""
What a plan adds to the history of its stack: the package of its revision, and baselines (docs/reference/engine.md,
"History").
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from planner_svc.changes.differences import Differences
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Matching
from services.core.model import Baseline, InventoryEntry, Key, Object, StackRecord, Step, by_key
from services.kinds.attachment import text_digest
from services.kinds.baseline_text import baselines_text
from services.packages.package_text import KeptPackage, package_text


@dataclass(frozen=True, slots=True)
class History:
    """
    The attachments of a plan.

    Attributes:
        package_digest: Digest of the package of its revision; empty: the revision has none, or there is no revision.
        baselines_digest: Digest of the baselines of resources that it does not write; empty: there are none.
        texts: The attachments that the store may lack, by their digests.
    """

    package_digest: str
    baselines_digest: str
    texts: Mapping[str, str]


NO_HISTORY = History("", "", {})


def history_of(
    desired: Desired,
    matching: Matching,
    differences: Differences,
    inventory: Sequence[InventoryEntry],
    steps: Sequence[Step],
    stack: StackRecord,
    previous: KeptPackage,
) -> History:
    """
    Make the package and the baselines that a plan adds to the history of *stack*.

    Args:
        desired: The desired state.
        matching: The matches.
        differences: The differences of desired and live state.
        inventory: The entries of the stack after the plan has run, sorted.
        steps: The steps of the plan.
        stack: The record that the plan is based on.
        previous: The package of the current revision; empty where nothing of the stack is skipped.
    """
    if not stack.is_kept or desired.is_end:
        return NO_HISTORY
    referred = {each.key for references in differences.references.values() for each in references if each.id}
    # A package without objects is a package too: only the revision of an uninstall has none.
    kept = kept_package(desired, matching, inventory, previous, referred)
    if desired.packages:
        packages = desired.packages
        kept = replace(kept, packages=packages.installed, declarations=packages.declarations)
    package = package_text(kept)
    texts = {text_digest(package): package}
    [package_digest] = texts
    baselines = baselines_text(unwritten_baselines(matching, inventory, steps, stack))
    baselines_digest = text_digest(baselines) if baselines else ""
    if baselines:
        texts[baselines_digest] = baselines
    if desired.packages:
        texts |= desired.packages.contents
    # The store holds the package of the current revision already.
    return History(package_digest, baselines_digest, {key: texts[key] for key in texts if key != stack.package_digest})


def kept_package(
    desired: Desired,
    matching: Matching,
    inventory: Collection[InventoryEntry],
    previous: KeptPackage,
    referred: Collection[Key],
) -> KeptPackage:
    """
    The package as it is applied: a recorded object that is skipped is in it as in the revision before.

    A protected object is in it only if the package has it: a plan for the revision leaves the resource as it is, too.

    Args:
        desired: The desired state.
        matching: The matches.
        inventory: The entries of the stack after the plan has run.
        previous: The package of the current revision; empty where nothing of the stack is skipped.
        referred: Keys of the objects that others refer to.
    """
    entries, before = by_key([*inventory]), previous.applied
    if desired.packages:
        # What these objects name may have got another key: another package declares it.
        before |= {item.key: item for item in desired.package.objects if item.key in before}
    kept = matching.protected_entries
    left_alone = {key for key, entry in matching.untouched.items() if not (entry.is_pending_delete or key in kept)}
    protected = {each.key for each in matching.protected_replacements}
    # Not the objects of the matches: their specs are as the platform would hold them.
    objects = {
        item.key: _as_applied(item, entries[item.key].associations)
        for item in desired.package.objects
        if item.key in matching.matches
    }
    objects |= {item.key: item for item in desired.package.objects if item.key in protected}
    # Labels of these objects may have left the package, or have got other keys.
    objects |= {key: _as_applied(before[key], entries[key].associations) for key in left_alone & before.keys()}
    unknown = left_alone - before.keys()
    for item in desired.package.objects:
        # Other objects refer to these by name: without them, the names have no meaning.
        if item.key not in objects and (item.key in unknown or item.key in referred):
            objects[item.key] = item
            unknown = unknown | {item.key}
    if desired.packages:
        # Forgotten resources of packages that are not compared: a plan that compares them finds the objects again.
        forgotten = {item.key: item for item in desired.package.objects if desired.skips(item.key)}
        unknown = unknown | (forgotten.keys() - objects.keys())
        objects = forgotten | objects
    lifecycles = desired.package.lifecycles
    if desired.keeps_others and not lifecycles:
        # The objects that stay keep what their package says.
        lifecycles = previous.lifecycles
    return KeptPackage(tuple(objects[key] for key in sorted(objects)), frozenset(unknown), lifecycles=lifecycles)


def _as_applied(item: Object, associations: tuple[Key, ...]) -> Object:
    return item if associations == item.associations else item._replace(associations=associations)


def unwritten_baselines(
    matching: Matching, inventory: Sequence[InventoryEntry], steps: Sequence[Step], stack: StackRecord
) -> list[Baseline]:
    """The baselines of resources that no step writes and that have none yet, as the platform holds them, by key."""
    recorded, written = by_key(stack.resources), {step.key for step in steps if step.new_spec}
    baselines: list[Baseline] = []
    for entry in inventory:
        key, before = entry.key, recorded.get(entry.key)
        is_based = before and before.resource_id == entry.resource_id and key not in stack.without_baseline
        live = matching.live.get((key.kind, entry.resource_id))
        if live and not (is_based or entry.is_pending_delete or key in written):
            baselines.append(Baseline(key, live.spec.text, live.references))
    return baselines
