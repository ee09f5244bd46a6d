"""Takes the packages of a stack apart again, as the current revision has them."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set

from planner_svc.composition.full_names import names_any, package_of, renamed
from planner_svc.composition.model import Component
from services.core.model import Key, Object, Package
from services.kinds.registry import family_and_name
from services.packages.package_text import Declaration, KeptPackage


def decompose(kept: KeptPackage, dropped: Collection[Key] = ()) -> dict[str, Component]:
    """
    The components that were composed, by the names of their packages; their objects have full names.

    An object that several packages declare is one of each of them, under the full name and with the labels that it has
    there. Where others name it, they name the declaration of a package that they require. Packages without objects
    and objects whose resource was forgotten are among them.

    Args:
        kept: The package of a revision.
        dropped: Declarations, by their full names, that are not there any more. They are named only by objects that can
            name no other one.
    """
    dropped_names = {family_and_name(key) for key in dropped}
    objects: defaultdict[str, list[Object]] = defaultdict(list)
    declared: dict[tuple[str, Key], Declaration] = {}
    own_names: defaultdict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for item in kept.objects:
        declarations = kept.declarations.get(item.key, ())
        if not declarations:
            objects[package_of(item.key.name)].append(item)
        for each in declarations:
            package = package_of(each.key.name)
            objects[package].append(item)
            declared[package, item.key] = each
            own_names[package][family_and_name(item.key)] = each.key.name
    shared: dict[tuple[str, str], list[str]] = {
        family_and_name(key): [key.name, *(each.key.name for each in declarations if each.key != key)]
        for key, declarations in kept.declarations.items()
    }
    components: dict[str, Component] = {}
    for installed in kept.packages:
        requires = frozenset(each.name for each in installed.requires)
        name_of = _names_in(shared, own_names[installed.name], requires, dropped_names)
        items = [renamed(item, name_of) if _concerns(item, shared) else item for item in objects[installed.name]]
        for place, item in enumerate(objects[installed.name]):
            if declaration := declared.get((installed.name, item.key)):
                items[place] = items[place]._replace(associations=declaration.labels, lifecycle=declaration.lifecycle)
        document = kept.lifecycles.get(installed.name)
        whole = Package(tuple(items), lifecycles={"": document} if document else {})
        components[installed.name] = Component(installed.name, whole, requires)
    return components


def _concerns(item: Object, shared: Collection[tuple[str, str]]) -> bool:
    """Whether *item* is one of the objects that several packages declare, or names one."""
    return family_and_name(item.key) in shared or names_any(item, shared)


def _names_in(
    shared: Mapping[tuple[str, str], Sequence[str]],
    own_names: Mapping[tuple[str, str], str],
    requires: Set[str],
    dropped: Collection[tuple[str, str]],
) -> Callable[[str, str], str]:
    """
    How a package names the objects that several packages declare.

    Args:
        shared: The full names of each of them, the one that the revision has first.
        own_names: Those that the package declares itself.
        requires: The packages that it requires.
        dropped: Declarations that are not there any more.
    """

    def name_of(family: str, name: str) -> str:
        if own := own_names.get((family, name)):
            return own
        names = [each for each in shared.get((family, name), ()) if package_of(each) in requires]
        return next((each for each in names if (family, each) not in dropped), names[0] if names else name)

    return name_of
