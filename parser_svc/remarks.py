"""Remarks on objects that break no rule: unknown keys, and values that mean something else than they seem to."""

from collections.abc import Iterator

from parser_svc.envelope import RawObject
from services.kinds.diagnostics import Code
from services.kinds.format.fields import THE_KEY, Fields, Remark, Rewrite
from services.kinds.format.shapes import nearest
from services.kinds.registry import FAMILY_NAMES, KINDS
from services.kinds.schema import METADATA, spec_table
from services.packages.lifecycle import is_lifecycle
from services.packages.manifest import is_manifest, manifest_remarks

_ENVELOPE = ("apiVersion", "kind", "metadata", "spec")


def remarks_on(raw: RawObject, spec_is_unremarkable: bool = False) -> Iterator[Remark]:
    """
    The remarks on one object, in the order of the parts of an envelope.

    Args:
        raw: The object.
        spec_is_unremarkable: Whether its spec is known to give no remarks, so that it is not checked.
    """
    if raw.kind in FAMILY_NAMES:
        text = f"{raw.kind} is a family of kinds, so this object will be ignored; write the kind that you mean"
        yield Remark(Code.FAMILY_IGNORED, "kind", text, ("kind",))
        return
    if is_lifecycle(raw.kind, raw.api_version):
        # Its unknown keys are violations.
        return
    for key in sorted(raw.unknown_keys) if not raw.other_format else ():
        yield _unknown(key, raw)
    if is_manifest(raw.kind, raw.api_version):
        yield from manifest_remarks(raw.metadata, raw.spec)
    if raw.kind in KINDS:
        if not METADATA.is_unremarkable(raw.metadata):
            yield from METADATA.remarks(Fields(raw.metadata, "metadata", ("metadata",)))
        if not spec_is_unremarkable:
            yield from spec_table(raw.kind).remarks(Fields(raw.spec, "spec", ("spec",)))


def _unknown(key: str, raw: RawObject) -> Remark:
    alike = nearest(key, _ENVELOPE)
    hint = f"did you mean {alike!r}?" if alike else "its content belongs under spec"
    text = f"an object has no key {key[:60]!r}, so it will be ignored; {hint}"
    # Without this, the fix could repeat a key.
    rewrite = Rewrite(alike) if alike in raw.missing_keys else None
    return Remark(Code.UNKNOWN_FIELD, key, text, (key, THE_KEY), rewrite=rewrite)
