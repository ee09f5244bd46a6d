"""Prepares specs for plans and for writes, by one rule."""

from collections.abc import Mapping

from services.core.model import ResettingSpec, Spec
from services.drivers.influxdb.codecs.codec import Body, References, Refused
from services.drivers.influxdb.codecs.registry import CODECS
from services.drivers.mutation import Create, Rejected, ResourceId, Update
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


def with_resets(item: Create | Update, answer: Spec | Rejected, live: Mapping[ResourceId, Body]) -> Spec | Rejected:
    """The prepared spec with what its write resets in the *live* resource, if it resets anything."""
    if isinstance(answer, Rejected) or not isinstance(item, Update) or item.id not in live:
        return answer
    resets_of = CODECS[item.id.kind].resets
    resets = resets_of(answer.value, live[item.id]) if resets_of else []
    return ResettingSpec(answer, resets) if resets else answer
