"""Reads the templates of an apply as sources of a package."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Self

import orjson
from msgspec import Struct

from services.addresses import is_of_jsonnet
from services.core import source_names
from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.requests.members import Text, about

_CONTENTS = {
    "anyOf": [
        {"$ref": "#/components/schemas/Package"},
        {"$ref": "#/components/schemas/PackageObject"},
        {"type": "string", "description": "YAML, JSON or Jsonnet"},
        {"type": "null"},
    ]
}


class TemplateBody(Struct):
    """A source of a package."""

    contents: Annotated[Any, about("objects, or a text", **_CONTENTS)] = None
    contentType: Annotated[Text, about("json, yaml, yml or jsonnet; default: detected by the name or the text")] = None
    sources: Annotated[list[str] | None, about("names of the source, for messages and for the record of the stack")] = (
        None
    )


class Remote(Struct):
    """A package at an address."""

    url: Annotated[Text, about("the address", needed=True)] = None
    contentType: Text = None


class Encoding(StrEnum):
    """The encoding of a source; the parser detects an unknown one."""

    UNKNOWN = ""
    YAML = "yaml"
    JSON = "json"
    JSONNET = "jsonnet"


@dataclass(frozen=True, slots=True)
class Template:
    """
    One source: a text or an address.

    Attributes:
        name: Name of the source; empty for an address, which is its own name.
        encoding: Encoding of its text.
        text: Its text; unused with an address. It may contain credentials, and is not part of the repr.
        url: Address of its text; empty: the text is in *text*.
        is_generated: Whether the text was made from objects, so that its lines are not lines of the client.
    """

    name: str = ""
    encoding: Encoding = Encoding.UNKNOWN
    text: str = field(default="", repr=False)
    url: str = ""
    is_generated: bool = False

    @classmethod
    def of_objects(cls, name: str, encoding: Encoding, objects: Sequence[Any]) -> Self:
        """
        A template with a list of objects, encoded as JSON.

        Raises:
            Problem: The objects cannot be encoded.
        """
        try:
            text = orjson.dumps(objects).decode()
        except orjson.JSONEncodeError:
            message = f"{name[:200]}: lists and objects are nested too deeply to be encoded; use fewer levels"
            raise Problem(Code.UNPROCESSABLE_ENTITY, message) from None
        return cls(name, encoding, text, is_generated=True)


def templates_of_remotes(remotes: Iterable[Remote]) -> list[Template]:
    """The addresses of a body; entries without an address are ignored."""
    return [Template(url=remote.url, encoding=_of_type(remote.contentType)) for remote in remotes if remote.url]


def templates_of_bodies(bodies: Iterable[TemplateBody], last: TemplateBody | None) -> list[Template]:
    """
    The templates of a body: ``templates``, then ``template``. Entries without contents are ignored.

    Raises:
        Problem: An entry is invalid.
    """
    every = [*bodies, last] if last else bodies
    return [template for place, each in enumerate(every) for template in _template(place, each)]


def _template(place: int, body: TemplateBody) -> Iterator[Template]:
    names, contents = body.sources or [], body.contents
    encoding = _of_type(body.contentType) or _of_name(names[0] if names else "")
    name = "; ".join(names) or source_names.STREAM
    if isinstance(contents, str):
        yield Template(name, encoding, text=contents)
    elif encoding is Encoding.JSONNET:
        # A list is a valid Jsonnet program, too. The parser decides whether it accepts Jsonnet.
        yield Template.of_objects(name, encoding, contents if isinstance(contents, list) else [])
    elif isinstance(contents, dict):
        yield Template.of_objects(name, Encoding.JSON, [contents])
    elif isinstance(contents, list):
        if objects := [each for each in contents if not _is_empty_document(each)]:
            yield Template.of_objects(name, Encoding.JSON, objects)
    elif contents is not None:
        raise Problem(
            Code.UNPROCESSABLE_ENTITY, f"templates[{place}].contents ({name[:200]}): write a list of objects, or a text"
        )


def _is_empty_document(value: Any) -> bool:
    """Whether an entry is the one that InfluxDB's command line sends for an empty YAML document."""
    if not isinstance(value, dict):
        return value is None
    metadata = value.get("metadata") or {}
    return (
        not (value.get("apiVersion") or value.get("kind") or value.get("spec"))
        and isinstance(metadata, dict)
        and not any(metadata.values())
        and value.keys() <= {"apiVersion", "kind", "metadata", "spec"}
    )


_TYPES: Mapping[str, Encoding] = {
    "jsonnet": Encoding.JSONNET,
    "json": Encoding.JSON,
    "yaml": Encoding.YAML,
    "yml": Encoding.YAML,
}


def _of_type(content_type: Text) -> Encoding:
    """The encoding that a ``contentType`` names, such as ``yaml`` or a media type."""
    return _TYPES.get((content_type or "").lower().rpartition("/")[2].removeprefix("x-"), Encoding.UNKNOWN)


def _of_name(name: str) -> Encoding:
    if is_of_jsonnet(name):
        return Encoding.JSONNET
    return _TYPES.get(name.lower().rpartition(".")[2], Encoding.UNKNOWN) if "." in name else Encoding.UNKNOWN
