"""Templates of an apply as sources of a package."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

import orjson

from services.addresses import is_of_jsonnet
from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.requests.members import Members

UNNAMED = "byte stream"
"""Name of a template without sources (docs/reference/package-format.md, "Sources")."""


class Encoding(StrEnum):
    """How a source is written; unknown: the parser finds out."""

    UNKNOWN = ""
    YAML = "yaml"
    JSON = "json"
    JSONNET = "jsonnet"


@dataclass(frozen=True, slots=True)
class Template:
    """
    One source: a text or an address.

    Attributes:
        name: Name of the source; empty for an address, which is its own.
        encoding: How its text is written.
        text: Its text; of no meaning beside an address. It may hold credentials; not shown.
        url: Where its text is; empty: here.
        is_generated: Whether the text was made of objects: its lines mean nothing to whoever sent them.
    """

    name: str = ""
    encoding: Encoding = Encoding.UNKNOWN
    text: str = field(default="", repr=False)
    url: str = ""
    is_generated: bool = False

    @classmethod
    def of_objects(cls, name: str, encoding: Encoding, objects: Sequence[Any]) -> Self:
        """
        A list of objects, as text.

        Raises:
            Problem: It cannot be written.
        """
        try:
            text = orjson.dumps(objects).decode()
        except orjson.JSONEncodeError:
            told = f"{name[:200]}: too many lists and objects inside each other"
            raise Problem(Code.UNPROCESSABLE_ENTITY, told) from None
        return cls(name, encoding, text, is_generated=True)


def read_remotes(body: Members) -> list[Template]:
    """
    The addresses of a body; entries without an address do not count.

    Raises:
        Problem: An entry is not what it should be.
    """
    return [
        Template(url=url, encoding=_of_type(remote.text("contentType")))
        for remote in body.objects("remotes")
        if (url := remote.text("url"))
    ]


def read_templates(body: Members) -> list[Template]:
    """
    The templates of a body: ``templates``, then ``template``. What has no contents is none.

    Raises:
        Problem: An entry is not what it should be.
    """
    given = list(body.objects("templates"))
    if single := body.object("template"):
        given.append(single)
    return [template for place, each in enumerate(given) for template in _template(place, each)]


def _template(place: int, given: Members) -> Iterator[Template]:
    names, kind, contents = given.texts("sources"), given.text("contentType"), given.any("contents")
    encoding = _of_type(kind) or _of_name(names[0] if names else "")
    name = "; ".join(names) or UNNAMED
    if isinstance(contents, str):
        yield Template(name, encoding, text=contents)
    elif encoding is Encoding.JSONNET:
        # A list is a program, too; whether programs are read is for the parser to say.
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
    """Whether an entry is what InfluxDB's command line makes of an empty YAML document."""
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


def _of_type(word: str) -> Encoding:
    """What a ``contentType`` says: a word, or a media type."""
    return _TYPES.get(word.lower().rpartition("/")[2].removeprefix("x-"), Encoding.UNKNOWN)


def _of_name(name: str) -> Encoding:
    if is_of_jsonnet(name):
        return Encoding.JSONNET
    return _TYPES.get(name.lower().rpartition(".")[2], Encoding.UNKNOWN) if "." in name else Encoding.UNKNOWN
