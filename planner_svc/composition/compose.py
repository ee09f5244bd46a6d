"""Makes one package of a stack out of several (docs/reference/engine.md, "Composition")."""

from collections.abc import Collection, Iterable, Sequence

from planner_svc.composition.equal_objects import merged
from planner_svc.composition.full_names import with_full_names
from planner_svc.composition.model import Component, Composition, CompositionProblems
from planner_svc.composition.references import broken_references
from services.core.model import Key, Object, Package, PlatformTraits


def compose(
    components: Sequence[Component],
    platform: PlatformTraits,
    recorded: Collection[Key] = (),
    previous: Iterable[Object] = (),
) -> Composition | CompositionProblems:
    """
    Make one package of the stack that has *components*.

    Objects, associations and fields that name an object get full names. Objects of kinds with unique names whose names
    are equal for the platform are one object, with the labels of all; all that name one of them name this object.

    Args:
        components: The packages, each name once, in the order in which they share a key: each after those it requires.
        platform: The rules of the platform for names.
        recorded: The keys of the stack: an object of several packages has the recorded one, else that of the first.
        previous: The objects of the current revision: of several recorded keys, it has the one that had its name.

    Returns:
        The package, with the declarations of what several packages declare; or all problems.
    """
    objects = [with_full_names(item, each.name) for each in components for item in each.package.objects]
    merging = merged(objects, platform, recorded, previous)
    violations = broken_references(components)
    if violations or merging.differing:
        return CompositionProblems(violations, merging.differing)
    sources = dict.fromkeys(source for each in components for source in each.package.sources)
    lifecycles = {each.name: text for each in components for text in each.package.lifecycles.values()}
    return Composition(Package(merging.objects, tuple(sources), lifecycles), merging.declarations)
