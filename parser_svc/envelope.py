"""
The envelope of objects (docs/reference/package-format.md, "Objects"): apiVersion, kind, metadata, spec, not yet
validated.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from services.core.errors import SourceUndecodable
from services.core.model import Location
from services.kinds.other_formats import other_format
from services.syntax.places import NOWHERE, Place, Pointer, places, source_texts

_KEYS = ("apiVersion", "kind", "metadata", "spec")
_KEY_SET = frozenset(_KEYS)
_UNKNOWN: Place = (0, 0)
_NO_SPELLING: Mapping[str, str] = MappingProxyType({})


class RawObject(NamedTuple):
    """
    One object as a source has it.

    Attributes:
        source: Position of its source.
        pointer: The pointer to it in that source.
        kind: As written; empty when absent.
        api_version: As written; empty when absent.
        metadata: Empty when absent.
        spec: Empty when absent.
        location: Its first character; line 0 in generated text.
        spelling: The keys of the envelope as the source spells them, by key; empty for YAML.
        unknown_keys: Keys that an envelope does not have.
        missing_keys: Keys of the envelope that the source does not have.
        other_format: What it is instead of an object of a package, and what to do, in one sentence; empty if unknown.
    """

    source: int
    pointer: Pointer
    kind: str
    api_version: str
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    location: Location
    spelling: Mapping[str, str] = _NO_SPELLING
    unknown_keys: tuple[str, ...] = ()
    missing_keys: Collection[str] = ()
    other_format: str = ""

    def pointer_to(self, within: Pointer) -> Pointer:
        """The pointer in the source to the value at *within* in the object."""
        return (*self.pointer, *(self.spelling.get(str(step), step) for step in within[:1]), *within[1:])


def from_documents(
    source: int, name: str, text: str, documents: list[Any], starts: Mapping[int, Place]
) -> list[RawObject]:
    """
    The objects of a YAML stream; a document without content is no object (docs/reference/package-format.md, "YAML").

    Args:
        source: Position of the source.
        name: Its name.
        text: The stream.
        documents: The root of each document.
        starts: The places of the roots, by position of the document, where known.

    Raises:
        SourceUndecodable: A document, or a part of its envelope, has the wrong type.
    """
    roots = {
        position: _document(name, text, position, root) for position, root in enumerate(documents) if root is not None
    }
    # Any scalar counts as its source text, so that `kind: 5` is the kind "5".
    odd = {
        (position, key)
        for position, root in roots.items()
        for key in ("kind", "apiVersion")
        if not isinstance(root.get(key), str | None)
    }
    written = source_texts(text, odd) if odd else {}
    return [
        RawObject(
            source,
            (position,),
            written.get((position, "kind")) or _text(name, text, (position, "kind"), root),
            written.get((position, "apiVersion")) or _text(name, text, (position, "apiVersion"), root),
            _mapping(name, text, (position, "metadata"), root),
            _mapping(name, text, (position, "spec"), root),
            Location(name, *starts.get(position, _UNKNOWN)),
            _NO_SPELLING,
            *_odd_keys(root),
        )
        for position, root in roots.items()
    ]


def from_array(source: int, name: str, text: str, elements: list[Any], starts: Sequence[Place] = ()) -> list[RawObject]:
    """
    The objects of a JSON array; the keys of their envelopes are matched without regard to case.

    Args:
        source: Position of the source.
        name: Its name.
        text: Its text.
        elements: The elements of the array.
        starts: The places of the elements; empty for a text whose places are not reported.

    Raises:
        SourceUndecodable: An element, or a part of its envelope, has the wrong type.
    """
    places = starts or [_UNKNOWN] * len(elements)
    return [
        _from_element(source, Location(name, *place), text, (0, position), element)
        for position, (element, place) in enumerate(zip(elements, places, strict=True))
    ]


def _from_element(source: int, location: Location, text: str, pointer: Pointer, element: Any) -> RawObject:
    name = location.source
    if element is not None and not isinstance(element, dict):
        raise _misshapen(name, text, pointer, "each element of a package is an object")
    written = element or {}
    envelope_keys = {key.lower(): key for key in _KEYS}
    spelling = {envelope_keys[key.lower()]: key for key in written if key.lower() in envelope_keys}
    envelope = {key: written[spelled] for key, spelled in spelling.items()}
    for key in ("kind", "apiVersion"):
        if not isinstance(envelope.get(key), str | None):
            raise _misshapen(name, text, (*pointer, spelling[key]), f"{key} must be a text")
    return RawObject(
        source,
        pointer,
        envelope.get("kind") or "",
        envelope.get("apiVersion") or "",
        _mapping(name, text, (*pointer, "metadata"), envelope),
        _mapping(name, text, (*pointer, "spec"), envelope),
        location,
        spelling,
        tuple(key for key in written if key.lower() not in envelope_keys),
        _KEY_SET - spelling.keys(),
        other_format(written),
    )


def _odd_keys(root: Mapping[str, Any]) -> tuple[tuple[str, ...], Collection[str], str]:
    """The keys of *root* that an envelope does not have, the keys that it lacks, and ``other_format``."""
    keys = root.keys()
    return ((), (), "") if keys == _KEY_SET else (tuple(keys - _KEY_SET), _KEY_SET - keys, other_format(root))


def _document(name: str, text: str, position: int, root: Any) -> Mapping[str, Any]:
    if not isinstance(root, dict):
        problem = "each document is one object, a mapping with apiVersion, kind, metadata and spec"
        hint = "; only JSON has its objects in a list" if isinstance(root, list) else ""
        raise _misshapen(name, text, (position,), problem + hint)
    return root


def _mapping(name: str, text: str, pointer: Pointer, envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    value = envelope.get(str(pointer[-1]))
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _misshapen(name, text, pointer, f"{pointer[-1]} must be a mapping")
    return value


def _text(name: str, text: str, pointer: Pointer, envelope: Mapping[str, Any]) -> str:
    value = envelope.get(str(pointer[-1]))
    if isinstance(value, dict | list):
        raise _misshapen(name, text, pointer, f"{pointer[-1]} must be a text")
    return "" if value is None else str(value)


def _misshapen(name: str, text: str, pointer: Pointer, problem: str) -> SourceUndecodable:
    return SourceUndecodable(name, problem, *places(text, [pointer]).get(pointer, NOWHERE).place)
