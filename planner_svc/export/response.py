"""An export as messages: header, warnings, secrets, text."""

from collections import Counter
from collections.abc import Iterator

from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2

from planner_svc.export.create_export import gather_export
from planner_svc.export.inputs import ExportReader
from planner_svc.export.objects import Exported
from planner_svc.export.selection import Warned
from services.core.errors import RequestInvalid
from services.rpc.parts import cut, pieces
from services.syntax.writer import JsonWriter, Writer, YamlWriter

_MODELINE = "yaml-language-server: $schema="
"""The comment by which editors with the YAML language server find the schema of a document."""


async def make_export(
    request: planner_pb2.ExportPackageRequest, reader: ExportReader
) -> Iterator[planner_pb2.ExportPackageResponse]:
    """
    Make the export of *request*, and translate it.

    Raises:
        PkgerError: There is no export; planner.proto lists the reasons.
    """
    writer = _writer(request)
    exported = await gather_export(request, reader, writer)
    documents = [*filter(None, [exported.lifecycle]), *exported.documents]
    return _messages(exported, writer.joined(documents))


def _writer(request: planner_pb2.ExportPackageRequest) -> Writer:
    match request.encoding:
        case parser_pb2.ENCODING_UNSPECIFIED | parser_pb2.ENCODING_YAML:
            return YamlWriter(_MODELINE + request.schema if request.schema else "")
        case parser_pb2.ENCODING_JSON:
            return JsonWriter()
        case _:
            raise RequestInvalid("encoding", "packages are written as YAML or JSON")


def _messages(exported: Exported, text: str) -> Iterator[planner_pb2.ExportPackageResponse]:
    header = planner_pb2.ExportHeader(
        object_count=len(exported.documents),
        kind_counts=Counter(exported.kinds),
        warning_count=len(exported.warnings),
        secret_count=len(exported.secret_keys),
    )
    yield planner_pb2.ExportPackageResponse(header=header)
    for warnings in cut(planner_pb2.ExportWarnings(warnings=map(_warning, exported.warnings))):
        yield planner_pb2.ExportPackageResponse(warnings=warnings)
    for secrets in cut(planner_pb2.ExportSecrets(keys=sorted(exported.secret_keys))):
        yield planner_pb2.ExportPackageResponse(secrets=secrets)
    for piece in pieces(text):
        yield planner_pb2.ExportPackageResponse(text=piece)


def _warning(warned: Warned) -> planner_pb2.ExportWarning:
    resource = object_pb2.ResourceId(kind=warned.kind, id=warned.id) if warned.id else None
    return planner_pb2.ExportWarning(resource=resource, display_name=warned.display_name, text=warned.text)
