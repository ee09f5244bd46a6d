"""Writes packages back as text (docs/reference/package-format.md, "Text of a package")."""

from typing import Any

import orjson

from parser_svc.sources import Encoding
from services.core.errors import RequestInvalid
from services.core.model import Object, Package
from services.kinds.registry import KINDS
from services.packages.lifecycle import document_of
from services.syntax.writer import JsonWriter, YamlWriter


def render(package: Package, encoding: Encoding) -> str:
    """
    Write a package.

    Parsing the text, with the environment values that the package was parsed with, gives the same objects. One thing
    has no text: a default of a reference that is a date or an integer beyond 63 bits. Such a default counts as none.

    Args:
        package: The package.
        encoding: YAML or JSON.

    Raises:
        RequestInvalid: An object is of an unknown kind or incomplete.
    """
    writer = JsonWriter() if encoding is Encoding.JSON else YamlWriter()
    documents = [
        *(document_of(text) for text in package.lifecycles.values()),
        *(_document(position, item) for position, item in enumerate(package.objects)),
    ]
    return writer.joined(list(map(writer.document, documents)))


def _document(position: int, item: Object) -> dict[str, Any]:
    """An object as a source has it: the envelope in its order, mappings sorted by key."""
    if item.key.kind not in KINDS:
        raise RequestInvalid(f"package.objects[{position}].key.kind", f"there is no kind {item.key.kind!r}")
    # The canonical text, as its keys are sorted at every depth.
    spec = orjson.loads(item.spec.text)
    if item.associations:
        spec["associations"] = [{"kind": label.kind, "name": label.name} for label in item.associations]
    document: dict[str, Any] = {
        "apiVersion": item.api_version,
        "kind": item.key.kind,
        "metadata": {"name": item.key.name} | ({"lifecycle": orjson.loads(item.lifecycle)} if item.lifecycle else {}),
        "spec": spec,
    }
    written = {place.pointer: orjson.loads(place.text) for place in item.written}
    if spec["name"] == item.key.name and "/spec/name" not in written:
        # An object that is named by its metadata.name stays so, whatever value a reference there resolves to.
        del spec["name"]
    for pointer, value in written.items():
        _put(document, position, pointer, value)
    document["spec"] = dict(sorted(spec.items()))
    return document


def _put(document: dict[str, Any], position: int, pointer: str, value: Any) -> None:
    *steps, last = pointer.removeprefix("/").split("/")
    holder: Any = document
    try:
        for step in steps:
            holder = holder[int(step) if isinstance(holder, list) else step]
        holder[int(last) if isinstance(holder, list) else last] = value
    except (LookupError, TypeError, ValueError):
        field = f"package.objects[{position}].written"
        raise RequestInvalid(field, f"the object has nothing at {pointer!r}") from None
