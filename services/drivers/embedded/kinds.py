"""What the embedded platform has: its kinds, and the content that it refuses."""

from services.core.diff import changes, touches
from services.core.model import LABEL, Identity, KindTraits, NameUniqueness, PlatformTraits, Spec, Undo

_LABELS, _PRIMARY_KINDS = 10, 20
"""Stages (engine.md 3): labels come before what they are attached to; what refers to primary kinds will come after."""


def _kind(
    kind: str,
    name_uniqueness: NameUniqueness,
    *,
    stage: int = _PRIMARY_KINDS,
    delete_undo: Undo = Undo.RECREATE,
    immutable_paths: tuple[str, ...] = (),
    labelled: bool = True,
) -> KindTraits:
    # The platform remembers idempotency keys, whatever the kind.
    return KindTraits(
        kind,
        Identity.NATIVE,
        name_uniqueness,
        stage,
        delete_undo,
        immutable_paths=immutable_paths,
        labelled=labelled,
    )


# Uniqueness of names: service.md 0.2. A bucket's data is gone with it, so its deletion cannot be taken back.
_KINDS = (
    _kind(LABEL, NameUniqueness.CASE_INSENSITIVE, stage=_LABELS, labelled=False),
    _kind("Bucket", NameUniqueness.EXACT, delete_undo=Undo.NONE, immutable_paths=("/schemaType",)),
    _kind("Variable", NameUniqueness.EXACT),
    _kind("Task", NameUniqueness.NONE),
    _kind("Dashboard", NameUniqueness.NONE),
)

EMBEDDED = PlatformTraits(
    platform="embedded",
    version="1",
    kinds={traits.kind: traits for traits in _KINDS},
    max_batch_size=500,
    max_concurrency=4,
    fences=True,
)
"""What ``Describe`` says."""


def unique_name(kind: str, spec: Spec) -> str | None:
    """What no other resource of *kind* may have in the same organisation; None when names may repeat."""
    return EMBEDDED.kinds[kind].unique_name(spec.display_name)


def content_refusal(kind: str, spec: Spec) -> str | None:
    """Why the platform does not accept *spec*, as one sentence; None when it does."""
    if not spec.display_name:
        return f"a {kind} needs a name that is not empty"
    if kind == "Bucket" and spec.display_name.startswith("_"):
        return (
            f"bucket names that start with an underscore are reserved for the system; choose a name other than"
            f" {spec.display_name!r}"
        )
    return None


def change_refusal(kind: str, old: Spec, new: Spec) -> str | None:
    """Why the platform does not let a resource turn from *old* into *new*, as one sentence; None when it does."""
    changed = changes(old, new)
    for path in EMBEDDED.kinds[kind].immutable_paths:
        if touches(path, changed):
            return f"{path} of a {kind} cannot change; delete the {kind} {old.display_name!r} and create it again"
    return None
