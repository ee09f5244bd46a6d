"""Takes the packages of a stack apart again, as the current revision has them."""

from collections import defaultdict
from collections.abc import Mapping

from planner_svc.composition.full_names import renamed
from planner_svc.composition.model import Component
from services.core.model import Object, Package
from services.kinds.registry import family_of
from services.packages.package_text import KeptPackage


def decompose(kept: KeptPackage) -> dict[str, Component]:
    """
    The components that were composed, by the names of their packages; their objects have full names.

    An object that several packages declare is one of each of them, under the full name and with the labels that it has
    there. Packages without objects are among them.
    """
    objects: defaultdict[str, list[Object]] = defaultdict(list)
    own_names: defaultdict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for item in kept.objects:
        if item.key in kept.untouched:
            continue
        declarations = kept.declarations.get(item.key, ())
        if not declarations:
            objects[_package_of(item.key.name)].append(item)
        for each in declarations:
            package = _package_of(each.key.name)
            objects[package].append(item._replace(associations=each.labels))
            own_names[package][family_of(item.key.kind), item.key.name] = each.key.name
    return {
        each.name: Component(
            each.name,
            Package(tuple(_under_own_names(item, own_names[each.name]) for item in objects[each.name])),
            frozenset(required.name for required in each.requires),
        )
        for each in kept.packages
    }


def _under_own_names(item: Object, names: Mapping[tuple[str, str], str]) -> Object:
    return renamed(item, lambda family, name: names.get((family, name), name)) if names else item


def _package_of(full_name: str) -> str:
    return full_name.partition(".")[0]
