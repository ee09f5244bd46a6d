"""Full names of objects, ``PACKAGE.NAME``: no ``metadata.name`` has a dot, so a name with one is full already."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from services.core.model import LABEL, EnvReference, Key, Object
from services.kinds.format.canonical import spec_of
from services.kinds.registry import KINDS

_LABEL_FIELD = re.compile(r"spec\.associations\[(\d+)\]\.name")
"""The field of an environment reference that names a label."""

_NAME_POINTER = "/metadata/name"


def full_name(package: str, name: str) -> str:
    """The name in the stack of what an object of *package* calls *name*."""
    return name if "." in name else f"{package}.{name}"


def package_of(name: str) -> str:
    """The package of the object with the full *name*."""
    return name.partition(".")[0]


def full_key(package: str, key: Key) -> Key:
    """The key in the stack of what an object of *package* calls *key*."""
    return key._replace(name=full_name(package, key.name))


def source_name(package: str, version: str, file: str) -> str:
    """The name of the source that is *file* of a version of *package*."""
    return f"{package}@{version}/{file}"


def named(item: Object) -> Iterator[tuple[str, str, str]]:
    """The objects that *item* names: field, family and name."""
    for label in item.associations:
        yield "associations", KINDS[LABEL].family, label.name
    for field, family in KINDS[item.key.kind].uses.items():
        yield f"spec.{field}", family, item.spec.value[field]


def names_any(item: Object, names: Collection[tuple[str, str]]) -> bool:
    """Whether *item* names an object with one of *names*, each a family and a name."""
    return bool(names) and any((family, name) in names for _, family, name in named(item))


def with_full_names(item: Object, package: str) -> Object:
    """*item* of *package* under its full name, with the full names of the objects that it names."""
    return renamed(item, lambda _, name: full_name(package, name))


def renamed(item: Object, name_of: Callable[[str, str], str]) -> Object:
    """
    *item* under other names, also of the objects that it names.

    Values that sources give its name, and the names in its spec, by reference are left out: they are other names.

    Args:
        item: The object.
        name_of: Returns the other name of an object, by its family and name.
    """
    kind = KINDS[item.key.kind]
    key = item.key._replace(name=name_of(kind.family, item.key.name))
    labels = [label._replace(name=name_of(KINDS[LABEL].family, label.name)) for label in item.associations]
    names = {field: name_of(family, item.spec.value[field]) for field, family in kind.uses.items()}
    changed = {field: name for field, name in names.items() if name != item.spec.value[field]}
    by_reference = {f"/spec/{field}" for field in changed} | ({_NAME_POINTER} if key != item.key else set())
    associations = tuple(sorted(set(labels)))
    return item._replace(
        key=key,
        associations=associations,
        spec=spec_of({**item.spec.value, **changed}) if changed else item.spec,
        env_references=_at_labels(item.env_references, labels, associations),
        written=tuple(each for each in item.written if each.pointer not in by_reference),
    )


def with_both(item: Object, equal: Object) -> Object:
    """*item* with the labels and the environment references of an *equal* one besides its own."""
    labels = tuple(sorted({*item.associations, *equal.associations}))
    references = _at_labels(item.env_references, item.associations, labels)
    more = _at_labels(equal.env_references, equal.associations, labels)
    more = tuple(each for each in more if each not in references)
    return item._replace(associations=labels, env_references=(*references, *more))


def _at_labels(
    references: Iterable[EnvReference], before: Sequence[Key], after: Sequence[Key]
) -> tuple[EnvReference, ...]:
    """*references*, of which those to the labels *before* have the positions of these labels *after*."""
    return tuple(
        replace(each, resource_field=f"spec.associations[{after.index(before[int(place[1])])}].name") if place else each
        for each in references
        for place in (_LABEL_FIELD.fullmatch(each.resource_field),)
    )
