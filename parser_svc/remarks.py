"""What a person should know of objects that break no rule: unknown keys, values that count otherwise than they look."""

from collections.abc import Iterator

from parser_svc.envelope import RawObject
from services.kinds.field_table import nearest
from services.kinds.fields import THE_KEY, Fields, Remark
from services.kinds.schema import METADATA, spec_table
from services.kinds.table import FAMILY_NAMES, KINDS

_ENVELOPE = ("apiVersion", "kind", "metadata", "spec")


def remarks_on(raw: RawObject) -> Iterator[Remark]:
    """The remarks on one object, in the order in which its parts stand in an envelope."""
    if raw.kind in FAMILY_NAMES:
        text = f"{raw.kind} is a family of kinds, so this object will be ignored; write the kind that you mean"
        yield Remark("kind", text, ("kind",))
        return
    for key in sorted(raw.unknown_keys):
        yield Remark(key, _unknown(key), (key, THE_KEY))
    if raw.kind in KINDS:
        if not METADATA.is_unremarkable(raw.metadata):
            yield from METADATA.remarks(Fields(raw.metadata, "metadata", ("metadata",)))
        yield from spec_table(raw.kind).remarks(Fields(raw.spec, "spec", ("spec",)))


def _unknown(key: str) -> str:
    if alike := nearest(key, _ENVELOPE):
        return f"an object has no key {key[:60]!r}, so it will be ignored; did you mean {alike!r}?"
    return f"an object has no key {key[:60]!r}, so it will be ignored; its content belongs under spec"
