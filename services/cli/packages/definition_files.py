"""Reads files with definitions."""

from collections.abc import Mapping, Sequence

from pkger.model.v1.definition_pb2 import Definition
from pkger.parser.v1.parser_pb2 import ParseDefinitionsRequest

from services.cli.output.consoles import console
from services.cli.packages.parser import parser
from services.cli.packages.sources import read_sources
from services.cli.packages.violation_output import Findings, print_findings
from services.settings import load


async def read_definitions(files: Sequence[str], environ: Mapping[str, str]) -> list[Definition] | None:
    """
    The definitions in files; None if they are invalid: the violations are printed.

    Raises:
        CommandFailed: A file cannot be read.
        PkgerError: A source cannot be decoded.
    """
    sources = await read_sources(files, bounds=load(environ).bounds)
    async with parser(environ) as reading:
        parsed = await reading.parse_definitions(ParseDefinitionsRequest(sources=sources))
    if not parsed.violations:
        return list(parsed.definitions)
    texts = {source.name: source.text for source in sources if source.text and not source.generated}
    print_findings(console(), Findings.of_definitions(parsed), texts)
    return None
