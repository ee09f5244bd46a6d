"""Labels (docs/reference/package-format.md, "Labels")."""

from collections.abc import Mapping
from typing import Any

from services.core.model import LABEL
from services.kinds.format.field_table import DESCRIPTION, Field, Table
from services.kinds.format.fields import Fields
from services.kinds.format.kind import Kind, ReadResult, Scope, read_plainly
from services.kinds.format.shapes import Text

_MIN_NAME_BYTES = 2

_FIELDS = Table(DESCRIPTION, Field("color", Text(), 'Color in user interfaces, such as "#326bba".'))


def _read(fields: Fields, scope: Scope) -> ReadResult:
    return read_plainly(fields, scope, _FIELDS, _MIN_NAME_BYTES)


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    properties = {"color": spec["color"], "description": spec["description"]}
    return {"id": number, "orgID": 0, "name": spec["name"], "properties": properties}


KIND = Kind(
    name=LABEL,
    family="label",
    resource_type="labels",
    summary_key="labels",
    unique_display_name=True,
    min_name_bytes=_MIN_NAME_BYTES,
    about="A label, which other objects of the package can be associated with.",
    fields=_FIELDS,
    read=_read,
    summarise=_summarise,
    labelled=False,
)
