"""
Compares a resource with the expectation of a mutation: the same rule for every driver (docs/reference/engine.md,
"Expectations").
"""

from collections.abc import Iterable

from services.core.model import KindTraits, Reference, Spec, UnreadableSpecError
from services.drivers.mutation import Delete, Done, Rejected, StoredResource, Update
from services.engine.outcome import RejectionReason
from services.kinds.comparing import differences


def held_to(item: Update | Delete, live: StoredResource, traits: KindTraits) -> Done | Rejected | None:
    """
    The outcome of *item* if the *live* resource decides it without a write; None: the write is to be performed.

    Call it with the live resource: in the transaction that writes, where the platform has one, else right before.
    """
    expected = item.expected
    if expected is None:
        return None
    is_expected = _is(live, expected.spec_json, expected.references, traits)
    if isinstance(item, Delete):
        is_expected = is_expected and {*live.label_ids} == {*expected.label_ids}
    elif not is_expected and _is(live, item.spec.text, item.references, traits):
        return Done(live)
    if is_expected:
        return None
    return Rejected(RejectionReason.CHANGED, f"{live.id} is not as expected", live=live)


def _is(live: StoredResource, spec_json: str, references: Iterable[Reference], traits: KindTraits) -> bool:
    if {*live.references} != {*references}:
        return False
    if live.spec_json == spec_json:
        return True
    kind = live.id.kind
    try:
        return not differences(kind, Spec(live.spec_json, ""), kind, Spec(spec_json, ""), traits.set_paths)
    except UnreadableSpecError:
        return False
