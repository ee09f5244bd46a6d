"""Prepares specs for plans and for writes, by one rule."""

from services.core.model import Spec
from services.drivers.influxdb.codecs.codec import References, Refused
from services.drivers.influxdb.codecs.registry import CODECS
from services.drivers.mutation import Create, Rejected, Update
from services.engine.outcome import RejectionReason
from services.kinds.format.canonical import spec_of


def prepared(kind: str, spec: Spec, references: References) -> Spec:
    """
    Return *spec* as the platform would hold it.

    Raises:
        Refused: The platform cannot hold it.
    """
    return spec_of(CODECS[kind].prepare(spec.value, references))


def prepared_or_rejected(item: Create | Update) -> Spec | Rejected:
    """The spec of *item* as the platform would hold it, or why it cannot."""
    kind = item.kind if isinstance(item, Create) else item.id.kind
    try:
        return prepared(kind, item.spec, item.references)
    except Refused as refused:
        return Rejected(RejectionReason.CONTENT_REFUSED, str(refused))
