"""The effects of steps as text for users."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from pkger.model.v1 import plan_pb2
from rich.text import Text

from services.cli.output.escapes import one_line
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
    How an effect is printed.

    Attributes:
        sign: The sign in front of its line.
        style: The style of its line.
        planned: Text after the number of such effects in a plan.
        done: Text after the number of such effects that are done.
        ended: Text after the line of a step that is done; ``{}`` stands for the id of the resource.
        undone: Text after the line of a step that is undone.
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
"""Texts for the fields of ``StepCounts`` (plan.proto), in the order of the summary line."""

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
"""How the entries of a plan are printed, in the order of the summary line."""


def effect_in(step: plan_pb2.Step) -> AnyEffect:
    """The effect of a step of a plan, without its content."""
    return effect_of(bare_step_from_pb(step))


def wording(effect: AnyEffect) -> Wording:
    """How *effect* is printed."""
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
    """Whether the effect destroys the previous value of a secret, which cannot be read back."""
    return isinstance(effect, PutSecret) and effect.overwrites


def step_line(step: plan_pb2.Step) -> Text:
    """A step of a plan in one line."""
    effect = effect_in(step)
    words, about = wording(effect), effect.step
    subject = f"{about.key.kind} {about.key.name or about.resource_id}"
    if about.label:
        subject += f" {'without' if effect.removes else 'with'} label {about.label.name or about.label_id}"
    elif overwrites_secret(effect):
        subject += " (overwritten; cannot be undone)"
    elif name := step.create.display_name or step.update.display_name or step.delete.old_display_name:
        subject += f" {json.dumps(name, ensure_ascii=False)}"
    if about.loss:
        subject += f" (loses {about.loss.data}; cannot be undone)"
    return Text("  ").append(f"{words.sign} {one_line(subject)}", words.style)
