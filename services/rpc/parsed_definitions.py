"""Joins the streamed response of ``ParseDefinitions``."""

from collections.abc import AsyncIterable
from dataclasses import dataclass, field

from pkger.model.v1 import definition_pb2, object_pb2
from pkger.parser.v1 import parser_pb2


@dataclass(slots=True)
class ParsedDefinitions:
    """
    The joined response of ``ParseDefinitions``.

    Attributes:
        header: The header.
        violations: All violations; empty if the definitions are valid.
        definitions: The definitions; empty if there are violations.
    """

    header: parser_pb2.DefinitionsHeader = field(default_factory=parser_pb2.DefinitionsHeader)
    violations: list[object_pb2.Violation] = field(default_factory=list)
    definitions: list[definition_pb2.Definition] = field(default_factory=list)


async def joined_definitions(answers: AsyncIterable[parser_pb2.ParseDefinitionsResponse]) -> ParsedDefinitions:
    """Join the messages of a response."""
    parsed = ParsedDefinitions()
    async for message in answers:
        match message.WhichOneof("part"):
            case "header":
                parsed.header = message.header
            case "violations":
                parsed.violations += message.violations.violations
            case "definitions":
                parsed.definitions += message.definitions.definitions
            case None:
                """A part that this version does not know."""
    return parsed
