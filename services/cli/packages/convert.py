"""``pkger convert``: what the user interface of InfluxDB exported, as a package."""

import orjson

from planner_svc.export.naming import names_of
from planner_svc.export.objects import export_objects
from planner_svc.export.selection import Chosen
from services.cli.common import caller
from services.cli.errors import CommandFailed, plain_errors
from services.cli.output.consoles import print_warnings
from services.cli.packages.export import write_file
from services.cli.packages.sources import read_sources
from services.drivers.influxdb.kinds import traits
from services.drivers.influxdb.ui_exports import NotExported, UiExport, read_exports
from services.kinds.other_formats import other_format
from services.syntax.writer import JsonWriter, Writer, YamlWriter


async def convert(file: str, out: str) -> None:
    """
    Write the package; what it cannot express is named on standard error.

    Args:
        file: The export; ``-`` is standard input.
        out: File to write, JSON if it ends with .json; empty: standard output, YAML.

    Raises:
        CommandFailed: The file is no export, or a file cannot be read or written.
    """
    with plain_errors():
        [source] = await read_sources((file,))
    if source.url:
        raise CommandFailed(f"{file}: write the address to a file first")
    export = _read(source.name, source.text)
    names = names_of(export.resources.values(), {}, {})
    chosen = [Chosen(resource, set(resource.label_ids)) for resource in export.resources.values()]
    writer: Writer = JsonWriter() if out.lower().endswith(".json") else YamlWriter()
    # No version of the server matters for what a package can express.
    package = export_objects(chosen, names, traits(version=""), writer)
    text = writer.joined(package.documents)
    if out:
        write_file(out, [text])
    else:
        caller().stdout.buffer.write(text.encode())
        caller().stdout.buffer.flush()
    print_warnings([*export.warnings, *(warned.text for warned in package.warnings)])


def _read(name: str, text: str) -> UiExport:
    try:
        document = orjson.loads(text.removeprefix("\ufeff"))
    except orjson.JSONDecodeError as error:
        raise CommandFailed(f"{name}:{error.lineno}:{error.colno}: this cannot be read as JSON: {error.msg}") from error
    try:
        return read_exports(document)
    except NotExported:
        problem = other_format(document) or "this is no export of the user interface of InfluxDB"
        raise CommandFailed(f"{name}: {problem}") from None
