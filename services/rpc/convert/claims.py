"""Claims of operations, and the operations that hold them."""

from pkger.journal.v1 import journal_pb2

from services.core.errors import RequestInvalid
from services.core.model import Key
from services.engine.claims import (
    Claim,
    Claimed,
    ClaimedAssociation,
    ClaimedName,
    ClaimedResource,
    ClaimedSecret,
    ClaimHolder,
    ClaimMode,
    Refusal,
)

_MODES = {
    ClaimMode.ALONE: journal_pb2.CLAIM_MODE_UNSPECIFIED,
    ClaimMode.REMOVE: journal_pb2.CLAIM_MODE_REMOVE,
    ClaimMode.USE: journal_pb2.CLAIM_MODE_USE,
    ClaimMode.TAKE_OVER: journal_pb2.CLAIM_MODE_TAKE_OVER,
}
_MODES_OF_NUMBERS = {number: mode for mode, number in _MODES.items()}


def claim_to_pb(claim: Claim) -> journal_pb2.Claim:
    """Translate a claim."""
    message = journal_pb2.Claim(step=claim.step, mode=_MODES[claim.mode])
    key = message.key
    key.kind, key.name = claim.key
    match claim.what:
        case ClaimedResource():
            resource = message.resource
            resource.kind, resource.id = claim.what
        case ClaimedName():
            name = message.name
            name.scope, name.name = claim.what
        case ClaimedAssociation(kind, resource_id, label_id):
            message.association.resource.kind, message.association.resource.id = kind, resource_id
            message.association.label_id = label_id
        case ClaimedSecret(secret_key):
            message.secret = secret_key
    return message


def claim_from_pb(message: journal_pb2.Claim, field: str) -> Claim:
    """
    Translate a claim.

    Raises:
        RequestInvalid: It names no claim that this version knows; the error names *field*.
    """
    mode = _MODES_OF_NUMBERS.get(message.mode)
    if mode is None:
        raise RequestInvalid(field, f"{message.mode} is not a claim mode that this version knows")
    key = message.key
    return Claim(message.step, Key(key.kind, key.name), _claimed(message, field), mode)


def refusal_from_pb(message: journal_pb2.RefusedClaim) -> Refusal:
    """Translate a claim that is refused because of its holder."""
    since = message.since.ToMicroseconds()
    holder = ClaimHolder(message.stack_id, message.stack_name, message.operation_id, since)
    return Refusal(claim_from_pb(message.claim, "refused"), holder, message.in_use)


def _claimed(message: journal_pb2.Claim, field: str) -> Claimed:
    match message.WhichOneof("what"):
        case "resource":
            resource = message.resource
            return ClaimedResource(resource.kind, resource.id)
        case "name":
            name = message.name
            return ClaimedName(name.scope, name.name)
        case "association":
            resource = message.association.resource
            return ClaimedAssociation(resource.kind, resource.id, message.association.label_id)
        case "secret":
            return ClaimedSecret(message.secret)
        case _:
            raise RequestInvalid(field, "names nothing that can be claimed")
