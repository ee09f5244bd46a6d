"""The kinds of the embedded platform, and the content that it refuses."""

from functools import partial

from services.core.diff import touches
from services.core.model import (
    LABEL,
    Identity,
    KindTraits,
    NameUniqueness,
    PlatformTraits,
    Precondition,
    Spec,
    Undo,
)
from services.drivers.kind_traits import CHECK, ENDPOINT, LABELS, REFERRING_KINDS, kind_traits
from services.kinds.comparing import differences

# The platform stores idempotency keys for every kind.
_kind = partial(kind_traits, Identity.NATIVE)


def _endpoint(kind: str, *sensitive_paths: str) -> KindTraits:
    return _kind(kind, NameUniqueness.EXACT, name_scope=ENDPOINT, sensitive_paths=sensitive_paths)


# Uniqueness of names: docs/reference/driver-contract.md, "Names". The data of a bucket is deleted with it, so the
# deletion cannot be undone.
_KINDS = (
    _kind(LABEL, NameUniqueness.TRIMMED_CASE_INSENSITIVE, stage=LABELS, labelled=False),
    _kind("Bucket", NameUniqueness.EXACT, delete_undo=Undo.NONE, immutable_paths=("/schemaType",)),
    _kind("Variable", NameUniqueness.CASE_INSENSITIVE),
    _kind("Task", NameUniqueness.NONE),
    _kind("Dashboard", NameUniqueness.NONE),
    _kind("CheckDeadman", NameUniqueness.EXACT, name_scope=CHECK),
    _kind("CheckThreshold", NameUniqueness.EXACT, name_scope=CHECK),
    _endpoint("NotificationEndpointHTTP", "/password", "/token", "/username"),
    _endpoint("NotificationEndpointPagerDuty", "/routingKey"),
    _endpoint("NotificationEndpointSlack", "/token"),
    _kind("NotificationRule", NameUniqueness.NONE, stage=REFERRING_KINDS),
    _kind("Telegraf", NameUniqueness.NONE),
)

EMBEDDED = PlatformTraits(
    platform="embedded",
    version="1",
    kinds={traits.kind: traits for traits in _KINDS},
    max_batch_size=2000,
    max_concurrency=4,
    fences=True,
    holds_secrets=True,
    precondition=Precondition.ATOMIC,
)
"""The response of ``Describe``."""


def name_scope(kind: str) -> str:
    """The scope, within an organization, in which names of *kind* are unique."""
    return EMBEDDED.kinds[kind].scope


def unique_name(kind: str, display_name: str) -> str | None:
    """The name as the scope of *kind* compares it; None when names of the kind may repeat."""
    return EMBEDDED.kinds[kind].unique_name(display_name)


def content_refusal(kind: str, spec: Spec) -> str | None:
    """Why the platform refuses *spec*, as one sentence; None when it accepts it."""
    if not spec.display_name:
        return f"a {kind} needs a name that is not empty"
    if kind == "Bucket" and spec.display_name.startswith("_"):
        return (
            f"bucket names that start with an underscore are reserved for the system; choose a name other than"
            f" {spec.display_name!r}"
        )
    return None


def change_refusal(kind: str, old: Spec, new: Spec) -> str | None:
    """Why the platform refuses to change a resource from *old* to *new*, as one sentence; None when it accepts it."""
    immutable_paths = EMBEDDED.kinds[kind].immutable_paths
    changed = differences(kind, old, kind, new) if immutable_paths else ()
    for path in immutable_paths:
        if touches(path, changed):
            return f"{path} of a {kind} cannot change; delete the {kind} {old.display_name!r} and create it again"
    return None
