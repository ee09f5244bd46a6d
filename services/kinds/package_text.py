"""
A package as the text that revisions retain: one line of canonical JSON for each object, sorted by key.

It contains the applied objects only: no environment values, no positions in sources, and nothing that can be computed
from the objects. Equal packages have equal texts.
"""

from dataclasses import dataclass

import orjson

from services.core.model import LABEL, Key, Object, Spec, WrittenValue
from services.kinds.format.canonical import canonical_text


@dataclass(frozen=True, slots=True)
class KeptPackage:
    """
    The package of a revision.

    Attributes:
        objects: The objects, with unique keys, sorted by key.
        untouched: Keys of objects that the stack had and the apply skipped, without a wanted state. Some of them are in
            *objects*, as other objects refer to them.
    """

    objects: tuple[Object, ...]
    untouched: frozenset[Key] = frozenset()

    @property
    def applied(self) -> dict[Key, Object]:
        """The objects that a stack has at this revision, by key."""
        return {item.key: item for item in self.objects if item.key not in self.untouched}


NOTHING_KEPT = KeptPackage(())
"""The package of a stack without a revision, and of one without objects."""


def package_text(package: KeptPackage) -> str:
    """Write *package*; its objects may come in any order."""
    object_lines = {item.key: _line(item, item.key in package.untouched) for item in package.objects}
    lines = object_lines | {key: canonical_text(_of_key(key, True)) for key in package.untouched - object_lines.keys()}
    return "".join(f"{lines[key]}\n" for key in sorted(lines))


def read_package(text: str) -> KeptPackage:
    """Read what ``package_text`` wrote."""
    objects: list[Object] = []
    untouched: set[Key] = set()
    # Not splitlines: other line breaks may stand unescaped in JSON text.
    for line in text.split("\n")[:-1]:
        value = orjson.loads(line)
        key = Key(value["kind"], value["name"])
        if value.get("untouched"):
            untouched.add(key)
        if "spec" in value:
            objects.append(_object(key, value))
    return KeptPackage(tuple(objects), frozenset(untouched))


def _line(item: Object, is_untouched: bool) -> str:
    fields = _of_key(item.key, is_untouched) | {"apiVersion": item.api_version}
    if item.associations:
        fields["associations"] = [label.name for label in item.associations]
    if item.written:
        fields["written"] = [[each.pointer, each.text] for each in item.written]
    # The text of a spec is canonical already; reading it again would take most of the time of a large plan.
    return f'{canonical_text(fields)[:-1]},"spec":{item.spec.text}}}'


def _of_key(key: Key, is_untouched: bool) -> dict[str, object]:
    fields: dict[str, object] = {"kind": key.kind, "name": key.name}
    return fields | {"untouched": True} if is_untouched else fields


def _object(key: Key, value: dict[str, object]) -> Object:
    spec, associations, written = value["spec"], value.get("associations", ()), value.get("written", ())
    assert isinstance(spec, dict)  # noqa: S101 - ``_line`` wrote it
    assert isinstance(associations, list | tuple)  # noqa: S101 - ``_line`` wrote it
    assert isinstance(written, list | tuple)  # noqa: S101 - ``_line`` wrote it
    return Object(
        key,
        str(value["apiVersion"]),
        Spec(canonical_text(spec), spec["name"], spec),
        tuple(Key(LABEL, name) for name in associations),
        written=tuple(WrittenValue(pointer, text) for pointer, text in written),
    )
