"""Sources of a package: which encoding each has, and the objects in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from parser_svc.envelope import RawObject, from_array, from_documents
from parser_svc.json_reader import read_array
from parser_svc.yaml_reader import read_documents
from services.core.errors import RequestInvalid, SourceTooLarge, SourceUndecodable
from services.core.limits import MAX_PACKAGE_BYTES

UNNAMED = "string"
"""Name of a source that was given none (packages.md 1.7)."""


class Encoding(Enum):
    """How a source is written."""

    YAML = "yaml"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Source:
    """One text; without an encoding, its name and its beginning tell."""

    name: str
    text: str
    encoding: Encoding | None = None


def read_sources(sources: Sequence[Source]) -> list[RawObject]:
    """
    Read all objects of all sources, in order.

    Raises:
        SourceUndecodable: A source is not what its encoding says, or an object in it has not the shape of one.
        SourceTooLarge: The sources together, or one of them, exceed a bound.
        RequestInvalid: A source has an encoding that this version does not read.
    """
    left = MAX_PACKAGE_BYTES
    for source in sources:
        left -= _size(source)
        if left < 0:
            raise SourceTooLarge(source.name, "bytes in all sources together", MAX_PACKAGE_BYTES)
    return [item for number, source in enumerate(sources) for item in _read(number, source)]


def _read(number: int, source: Source) -> list[RawObject]:
    if _encoding(number, source) is Encoding.JSON:
        return from_array(number, source.name, source.text, read_array(source.name, source.text))
    return from_documents(number, source.name, source.text, read_documents(source.name, source.text))


def _encoding(number: int, source: Source) -> Encoding:
    if source.encoding:
        return source.encoding
    match source.name.rpartition("/")[2].rpartition("."):
        case (_, ".", "json"):
            return Encoding.JSON
        case (_, ".", "yml" | "yaml"):
            return Encoding.YAML
        case (_, ".", "jsonnet"):
            raise RequestInvalid(f"sources[{number}]", f"{source.name} is Jsonnet, which this version does not read")
    # No YAML package begins with a list, so this can only be the JSON array (packages.md, P1).
    return Encoding.JSON if source.text.lstrip().startswith("[") else Encoding.YAML


def _size(source: Source) -> int:
    try:
        return len(source.text.encode())
    except UnicodeEncodeError as error:
        line = source.text.count("\n", 0, error.start) + 1
        raise SourceUndecodable(source.name, "half of a surrogate pair is no character", line) from None
