"""The options of ``pkger perform`` as an action set, a pure function."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import click

from services.actions.definitions import (
    DEFAULT_WAIT,
    STACK,
    ActionObject,
    ActionRun,
    ActionSet,
    ConfigMapSource,
    Predecessor,
    SecretPlace,
    SecretSource,
)
from services.actions.durations import SECOND

_PLACES = (SecretPlace.VARIABLE, SecretPlace.FILE)
"""The places that are written on the command line; others are the request."""


@dataclass(frozen=True, slots=True)
class ActionSetInput:
    """
    The options of ``pkger perform``, as typed.

    Attributes:
        action: The action.
        blueprint: The blueprint that has it; empty with a predecessor.
        predecessor: The action set that the new one is made from; empty: none.
        objects: ``stack/NAME`` or ``KIND/NAME@STACK``.
        platform: The platform of the objects; empty: the default one.
        org: Their organization; empty: the default one.
        options: ``NAME=TEXT``.
        config_maps: ``NAME=NAME``.
        secrets: ``NAME.KEY``, ``NAME.KEY=env:X`` or ``NAME.KEY=file:PATH``.
        artifacts: ``NAME.KEY=TEXT``.
        labels: ``NAME=TEXT``.
        name: Name of the action set; empty: the service makes one.
        sequential: Whether the actions run one after the other.
        wait: Seconds to wait for the stacks that are reserved; None: the default.
    """

    action: str
    blueprint: str = ""
    predecessor: str = ""
    objects: Sequence[str] = ()
    platform: str = ""
    org: str = ""
    options: Sequence[str] = ()
    config_maps: Sequence[str] = ()
    secrets: Sequence[str] = ()
    artifacts: Sequence[str] = ()
    labels: Sequence[str] = ()
    name: str = ""
    sequential: bool = False
    wait: float | None = None


def action_set_of(typed: ActionSetInput) -> ActionSet:
    """
    The action set that the options say: one action for each object, or one made from a predecessor.

    Raises:
        UsageError: An option has the wrong form; the message has no value of a secret.
    """
    objects = [_object(each, typed.platform, typed.org) for each in typed.objects]
    if duplicate := next((each for each in typed.objects if typed.objects.count(each) > 1), None):
        raise click.UsageError(f"--object {duplicate}: given twice")
    if typed.predecessor and len(objects) > 1:
        raise click.UsageError("--object: with --from, one object takes the place of that of the predecessor")
    inputs = ActionRun(
        name="" if typed.predecessor else typed.action,
        blueprint=typed.blueprint,
        artifacts=_nested("--artifact", typed.artifacts, "NAME.KEY=TEXT"),
        config_maps={
            name: ConfigMapSource(None, source)
            for name, source in _pairs("--config-map", typed.config_maps, "NAME=NAME")
        },
        secrets=_secrets(typed.secrets),
        options=named_texts("--option", typed.options),
    )
    runs = [replace(inputs, object=each) for each in objects] or [inputs]
    return ActionSet(
        name=typed.name,
        actions=() if typed.predecessor else tuple(runs),
        predecessor=Predecessor(typed.predecessor, typed.action) if typed.predecessor else None,
        overrides=runs[0] if typed.predecessor and runs[0] != ActionRun() else None,
        sequential=typed.sequential,
        wait=DEFAULT_WAIT if typed.wait is None else round(typed.wait * SECOND),
        labels=named_texts("--label", typed.labels),
    )


def named_texts(option: str, typed: Sequence[str]) -> dict[str, str]:
    """
    The texts by name of options ``NAME=TEXT``, split at the first "=".

    Raises:
        UsageError: One has another form, or a name is given twice.
    """
    return dict(_pairs(option, typed, "NAME=TEXT"))


def secrets_of_request(typed: Sequence[str]) -> list[str]:
    """
    The secrets among options ``--secret`` whose values come with the request, as ``NAME.KEY``, in their order.

    Raises:
        UsageError: As for ``action_set_of``.
    """
    _secrets(typed)
    return [each for each in typed if "=" not in each]


def _object(text: str, platform: str, org: str) -> ActionObject:
    kind, _, rest = text.partition("/")
    is_stack = kind.lower() == STACK.lower()
    name, at, stack = (rest, "", "") if is_stack else rest.partition("@")
    if not (kind and name) or (not is_stack and not (at and stack)):
        raise click.UsageError(f"--object {text!r}: write stack/NAME, or KIND/NAME@STACK for a resource")
    return ActionObject(STACK if is_stack else kind, name, stack, platform, org)


def _pairs(option: str, typed: Sequence[str], form: str) -> Iterator[tuple[str, str]]:
    """The names and texts of options, split at the first "="; each name once."""
    names: set[str] = set()
    for each in typed:
        name, equals, text = each.partition("=")
        if not (name and equals):
            raise click.UsageError(f"{option} {each!r}: write {form}")
        if name in names:
            raise click.UsageError(f"{option} {name}: given twice")
        names.add(name)
        yield name, text


def _nested(option: str, typed: Sequence[str], form: str) -> dict[str, dict[str, str]]:
    """The texts of options by name and key, split at the first ".": neither has one."""
    nested: dict[str, dict[str, str]] = {}
    for path, text in _pairs(option, typed, form):
        name, _, key = path.partition(".")
        if not (name and key):
            raise click.UsageError(f"{option} {path!r}: write {form}")
        nested.setdefault(name, {})[key] = text
    return nested


def _secrets(typed: Sequence[str]) -> Mapping[str, Mapping[str, SecretSource]]:
    """The places of secrets; what stands after "=" may be a value by mistake, so no message quotes it."""
    form = "NAME.KEY, NAME.KEY=env:X or NAME.KEY=file:PATH"
    placed: dict[str, dict[str, SecretSource]] = {}
    for each in typed:
        path, equals, place = each.partition("=")
        name, _, key = path.partition(".")
        if not (name and key):
            raise click.UsageError(f"--secret: write {form}")
        if key in placed.setdefault(name, {}):
            raise click.UsageError(f"--secret {path}: given twice")
        placed[name][key] = _place(path, place, form) if equals else SecretSource(SecretPlace.REQUEST)
    return placed


def _place(path: str, text: str, form: str) -> SecretSource:
    for place in _PLACES:
        name = text.removeprefix(f"{place}:")
        if name and name != text:
            return SecretSource(place, name)
    raise click.UsageError(
        f"--secret {path}=...: write {form}; a value is never on the command line: without =, it is asked for"
    )
