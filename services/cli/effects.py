"""What steps do, in the words that people read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from pkger.model.v1 import plan_pb2

from services.engine.effects import (
    AnyEffect,
    Attach,
    Create,
    Delete,
    DeleteSecret,
    Detach,
    PutSecret,
    Update,
    effect_of,
)
from services.rpc.convert.plans import bare_step_from_pb
from services.views.entries import Act


@dataclass(frozen=True, slots=True)
class Wording:
    """
    How an effect is told.

    Attributes:
        sign: In front of its line.
        style: Of its line.
        planned: Behind the number of such effects in a plan.
        done: Behind the number of those that took place.
        ended: Behind the line of one that took place; ``{}`` stands for the id of the resource.
        undone: Behind the line of one that was taken back.
    """

    sign: str
    style: str
    planned: str
    done: str
    ended: str
    undone: str = "undone"


_CREATE = Wording("+", "green", "to create", "created", "created {}")
_UPDATE = Wording("~", "yellow", "to update", "updated", "updated {}")
_DELETE = Wording("-", "red", "to delete", "deleted", "deleted {}")
_ATTACH = Wording("+", "green", "label(s) to attach", "label(s) attached", "attached {}")
_DETACH = Wording("-", "red", "label(s) to detach", "label(s) detached", "detached {}")
_PUT_SECRET = Wording("+", "green", "secret(s) to write", "secret(s) written", "written", "removed")
_OVERWRITE_SECRET = Wording("~", "yellow", "secret(s) to overwrite", "secret(s) overwritten", "written")
_RECORD = Wording("=", "dim", "in the record only", "in the record only", "")
_DELETE_SECRET = Wording("-", "red", "secret(s) to remove", "secret(s) removed", "removed")

SUMMED = {
    "secrets": _PUT_SECRET,
    "creates": _CREATE,
    "updates": _UPDATE,
    "deletes": _DELETE,
    "attaches": _ATTACH,
    "detaches": _DETACH,
}
"""How a sum tells of the numbers of steps (plan.proto), in its order."""

WORDS: Mapping[Act, Wording] = {
    Act.WRITE_SECRET: _PUT_SECRET,
    Act.OVERWRITE_SECRET: _OVERWRITE_SECRET,
    Act.REMOVE_SECRET: _DELETE_SECRET,
    Act.CREATE: _CREATE,
    Act.UPDATE: _UPDATE,
    Act.DELETE: _DELETE,
    Act.ATTACH: _ATTACH,
    Act.DETACH: _DETACH,
    Act.RECORD: _RECORD,
}
"""How an entry of a plan is told, in the order of a sum."""


def effect_in(step: plan_pb2.Step) -> AnyEffect:
    """What a step of a plan does; nothing is known of its content."""
    return effect_of(bare_step_from_pb(step))


def wording(effect: AnyEffect) -> Wording:
    """How *effect* is told."""
    match effect:
        case Create():
            return _CREATE
        case Update():
            return _UPDATE
        case Delete():
            return _DELETE
        case Attach():
            return _ATTACH
        case Detach():
            return _DETACH
        case PutSecret():
            return _OVERWRITE_SECRET if effect.overwrites else _PUT_SECRET
        case DeleteSecret():
            return _DELETE_SECRET
    assert_never(effect)


def overwrites_secret(effect: AnyEffect) -> bool:
    """Whether a secret is lost by it for good."""
    return isinstance(effect, PutSecret) and effect.overwrites
