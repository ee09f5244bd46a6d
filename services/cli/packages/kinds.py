"""``pkger kinds`` and ``pkger schema``: the kinds of objects that packages may have."""

import json
from collections.abc import Mapping

from pkger.parser.v1 import parser_pb2

from services.cli.errors import CommandFailed, plain_errors
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.tables import print_table
from services.cli.packages.parser import parser
from services.cli.process.interrupts import Interrupts
from services.kinds.format.shapes import nearest
from services.kinds.registry import FAMILY_NAMES, kinds_meant
from services.packages.lifecycle import KIND as LIFECYCLE
from services.packages.manifest import KIND as MANIFEST
from services.rpc.message_json import document_of


async def print_schema(kind: str, is_array: bool, environ: Mapping[str, str]) -> None:
    """
    Print the JSON Schema of a kind, a manifest, a Lifecycle document, or any object; with *is_array*, of a JSON array.

    Raises:
        CommandFailed: There is no such kind.
    """
    answer = await _kinds(environ)
    schemas = {each.name: each.schema_json for each in answer.kinds}
    schemas |= {MANIFEST: answer.manifest_schema_json, LIFECYCLE: answer.lifecycle_schema_json}
    if kind in FAMILY_NAMES:
        raise CommandFailed(f"objects of kind {kind} are ignored; write one of {', '.join(kinds_meant(kind))}")
    if kind and kind not in schemas:
        alike = nearest(kind, schemas)
        raise CommandFailed(
            f"there is no kind {kind!r}; " + (f"did you mean {alike}?" if alike else f"there are {', '.join(schemas)}")
        )
    schema = json.loads(schemas[kind] if kind else answer.schema_json)
    if is_array:
        # References within the schema are absolute, so its $defs have to stay at the top.
        root_keywords = {key: schema.pop(key) for key in ("$schema", "$defs") if key in schema}
        schema = {**root_keywords, "type": "array", "items": schema}
    print_document(schema, "json")


async def print_kinds(environ: Mapping[str, str], output: str) -> None:
    """Print all kinds; as data, with their schemas."""
    answer = await _kinds(environ)
    if output != "text":
        print_document([document_of(kind) for kind in answer.kinds], output)
        return
    rows = [
        (kind.name, kind.resource_type, "yes" if kind.unique_display_name else "", "yes" if kind.labelled else "")
        for kind in answer.kinds
    ]
    print_table(console(), ("KIND", "RESOURCE TYPE", "UNIQUE NAME", "LABELS"), rows)


async def _kinds(environ: Mapping[str, str]) -> parser_pb2.ListKindsResponse:
    with Interrupts() as interrupts, plain_errors():
        async with parser(environ) as reading:
            return await interrupts.or_stop(reading.kinds())
