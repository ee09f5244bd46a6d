"""The kinds and limits of an InfluxDB server, as ``Describe`` returns them."""

from functools import partial

from services.core.model import (
    LABEL,
    Identity,
    KindTraits,
    NameUniqueness,
    PlatformTraits,
    Precondition,
    Undo,
)
from services.drivers.influxdb.codecs.endpoint import HTTP, PAGERDUTY, SLACK
from services.drivers.influxdb.codecs.foreign import CUSTOM_CHECK, TELEGRAM
from services.drivers.kind_traits import CHECK, ENDPOINT, LABELS, PRIMARY_KINDS, REFERRING_KINDS, kind_traits

PLATFORM = "influxdb"
"""The type of platform."""

_MAX_BATCH_SIZE, _MAX_CONCURRENCY = 64, 2
"""A batch ends well within the deadline of a call, as the server needs 10 to 80 ms for a check or a rule."""


_named = partial(kind_traits, Identity.NATURAL_KEY)


def _repeating(kind: str, stage: int = PRIMARY_KINDS, costly_listing: bool = False) -> KindTraits:
    return KindTraits(kind, Identity.SEARCH, NameUniqueness.NONE, stage, Undo.RECREATE, costly_listing=costly_listing)


def _endpoint(kind: str, *sensitive_paths: str) -> KindTraits:
    return _named(kind, NameUniqueness.EXACT, name_scope=ENDPOINT, sensitive_paths=sensitive_paths)


_KINDS = (
    # The server trims the names of labels before it compares them.
    _named(LABEL, NameUniqueness.TRIMMED_CASE_INSENSITIVE, stage=LABELS, labelled=False),
    _named("Bucket", NameUniqueness.EXACT, delete_undo=Undo.NONE, immutable_paths=("/schemaType",)),
    _named("Variable", NameUniqueness.CASE_INSENSITIVE),
    _named("CheckThreshold", NameUniqueness.EXACT, name_scope=CHECK),
    _named("CheckDeadman", NameUniqueness.EXACT, name_scope=CHECK),
    _endpoint(HTTP, "/password", "/token", "/username"),
    _endpoint(SLACK, "/token"),
    _endpoint(PAGERDUTY, "/routingKey"),
    _named(CUSTOM_CHECK, NameUniqueness.EXACT, name_scope=CHECK),
    _named(TELEGRAM, NameUniqueness.EXACT, name_scope=ENDPOINT),
    _repeating("NotificationRule", stage=REFERRING_KINDS),
    _repeating("Task"),
    # The views of each dashboard need a request of their own.
    _repeating("Dashboard", costly_listing=True),
    _repeating("Telegraf"),
)


def traits(version: str) -> PlatformTraits:
    """What a server of this *version* can do."""
    return PlatformTraits(
        platform=PLATFORM,
        version=version,
        kinds={kind.kind: kind for kind in _KINDS},
        max_batch_size=_MAX_BATCH_SIZE,
        max_concurrency=_MAX_CONCURRENCY,
        fences=False,
        holds_secrets=True,
        precondition=Precondition.READ_FIRST,
    )


TRAITS = {kind.kind: kind for kind in _KINDS}
"""The traits of each kind, which do not depend on the version."""
