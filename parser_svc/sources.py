"""Sources of a package: their encodings, and their objects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from parser_svc.envelope import RawObject, from_array, from_documents
from parser_svc.known_documents import KnownDocuments, KnownObject
from services.addresses import is_of_jsonnet
from services.core.errors import EncodingInvalid, SourceUndecodable
from services.settings import Bounds
from services.syntax.json_reader import read_array
from services.syntax.usage import Usage, stopped_clock
from services.syntax.yaml_reader import read_stream


class Encoding(Enum):
    """How a source is written."""

    YAML = "yaml"
    JSON = "json"
    JSONNET = "jsonnet"


@dataclass(frozen=True, slots=True)
class Source:
    """
    One text. If its encoding is None, its name decides, and then the beginning of the text.

    Attributes:
        name: Its name, in messages and in the record.
        text: The text; never Jsonnet, which is evaluated before.
        encoding: None: not known.
        generated: Whether a program wrote the text, so that lines and columns are not reported.
    """

    name: str
    text: str
    encoding: Encoding | None = None
    generated: bool = False


def read_sources(
    sources: Sequence[Source],
    bounds: Bounds | None = None,
    clock: Callable[[], float] = stopped_clock,
    known_documents: KnownDocuments | None = None,
) -> list[RawObject | KnownObject]:
    """
    Read all objects of all sources, in order.

    Args:
        sources: The texts.
        bounds: The limits of all sources together; None: the default ones.
        clock: Returns seconds since any point of time; by default, time is not bounded.
        known_documents: The documents that need not be read again; None: all are read.

    Raises:
        SourceUndecodable: A source is invalid in its encoding, or an object in it does not have the shape of one.
        SourceTooLarge: The sources exceed a bound.
        EncodingInvalid: A source is Jsonnet.
    """
    usage = Usage(bounds, clock)
    for source in sources:
        usage.take_bytes(source.name, size(source.name, source.text))
    objects: list[RawObject | KnownObject] = []
    for number, source in enumerate(sources):
        objects += _read(number, source, usage, known_documents)
    return objects


def encoding_of(name: str) -> Encoding | None:
    """
    The encoding that the ending of a name or address implies (docs/reference/package-format.md, "Encoding of a
    source"); None: none.

    Endings that a server or a file system could treat as equal to one of Jsonnet imply Jsonnet as well
    (docs/reference/package-format.md, "Jsonnet").
    """
    if is_of_jsonnet(name):
        return Encoding.JSONNET
    match name.rpartition("/")[2].rpartition("."):
        case (_, ".", "json"):
            return Encoding.JSON
        case (_, ".", "yml" | "yaml"):
            return Encoding.YAML
    return None


def size(name: str, text: str) -> int:
    """
    The length of the text in UTF-8, in bytes.

    Raises:
        SourceUndecodable: It cannot be written as UTF-8.
    """
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise SourceUndecodable(name, "half of a surrogate pair is no character", line) from None


def _read(
    number: int, source: Source, usage: Usage, known_documents: KnownDocuments | None
) -> Sequence[RawObject | KnownObject]:
    try:
        match source.encoding or encoding_of(source.name) or _begins_as(source.text):
            case Encoding.JSON:
                elements, places = read_array(source.name, source.text, usage)
                return from_array(number, source.name, source.text, elements, () if source.generated else places)
            case Encoding.YAML:
                if known_documents and not source.generated:
                    return known_documents.read(number, source.name, source.text, usage)
                stream = read_stream(source.name, source.text, usage)
                starts = {} if source.generated else stream.starts
                return from_documents(number, source.name, source.text, stream.documents, starts)
            case Encoding.JSONNET:
                raise EncodingInvalid(source.name, "jsonnet", "evaluate it and send the JSON that it gives")
    except SourceUndecodable as error:
        if not source.generated:
            raise
        raise SourceUndecodable(source.name, error.metadata["problem"]) from None


def _begins_as(text: str) -> Encoding:
    # No YAML package begins with a list, so this can only be the JSON array (docs/reference/package-format.md,
    # "Oddities", P1).
    return Encoding.JSON if text.removeprefix("\ufeff").lstrip().startswith("[") else Encoding.YAML
