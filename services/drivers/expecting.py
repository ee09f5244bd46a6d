"""
Whether a resource is what a mutation expects, or what it would leave: the same for every driver
(docs/reference/engine.md, "Expectations").
"""

from collections.abc import Iterable

from services.core.model import KindTraits, Reference, Spec, UnreadableSpecError
from services.drivers.mutation import Delete, Done, Rejected, StoredResource, Update
from services.engine.outcome import RejectionReason
from services.kinds.comparing import differences


def held_to(item: Update | Delete, held: StoredResource, traits: KindTraits) -> Done | Rejected | None:
    """
    How *item* ends without being carried out, by what the resource *held* is; None: it is to be carried out.

    Call it for what is there, in the act that writes where the platform can, else right before.
    """
    expected = item.expected
    if expected is None:
        return None
    is_expected = _is(held, expected.spec_json, expected.references, traits)
    if isinstance(item, Delete):
        is_expected = is_expected and {*held.label_ids} == {*expected.label_ids}
    elif not is_expected and _is(held, item.spec.text, item.references, traits):
        return Done(held)
    if is_expected:
        return None
    return Rejected(RejectionReason.CHANGED, f"{held.id} is not as expected", found=held)


def _is(held: StoredResource, spec_json: str, references: Iterable[Reference], traits: KindTraits) -> bool:
    if {*held.references} != {*references}:
        return False
    if held.spec_json == spec_json:
        return True
    kind = held.id.kind
    try:
        return not differences(kind, Spec(held.spec_json, ""), kind, Spec(spec_json, ""), traits.set_paths)
    except UnreadableSpecError:
        return False
