"""
The effects of steps, one file each: its inverse, its requirements, and how its outcome is found.

A new effect is a file here and a row in ``effect_of``; mypy then names every place that has to handle it.
"""

from services.core.model import SECRET, Step, Verb
from services.engine.effects.attach import Attach
from services.engine.effects.create import Create
from services.engine.effects.delete import Delete
from services.engine.effects.delete_secret import DeleteSecret
from services.engine.effects.detach import Detach
from services.engine.effects.put_secret import PutSecret
from services.engine.effects.update import Update

__all__ = [
    "AnyEffect",
    "Attach",
    "Create",
    "Delete",
    "DeleteSecret",
    "Detach",
    "PutSecret",
    "Update",
    "effect_of",
    "inverse_of",
]

AnyEffect = Create | Update | Delete | Attach | Detach | PutSecret | DeleteSecret

_OF_RESOURCES: dict[Verb, type[AnyEffect]] = {
    Verb.CREATE: Create,
    Verb.UPDATE: Update,
    Verb.DELETE: Delete,
    Verb.ATTACH: Attach,
    Verb.DETACH: Detach,
}
_OF_SECRETS: dict[Verb, type[AnyEffect]] = {
    Verb.CREATE: PutSecret,
    Verb.UPDATE: PutSecret,
    Verb.DELETE: DeleteSecret,
}


def effect_of(step: Step) -> AnyEffect:
    """The effect of *step*."""
    return (_OF_SECRETS if step.key.kind == SECRET else _OF_RESOURCES)[step.verb](step)


def inverse_of(effect: AnyEffect) -> AnyEffect:
    """The effect that undoes *effect*."""
    return effect_of(effect.inverse())
