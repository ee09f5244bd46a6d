"""What a phase passes to its function: its arguments, rendered and checked. No error shows a rendered value."""

from collections.abc import Collection, Mapping
from typing import Any

from services.actions.action_sets import LARGEST_ARTIFACT_TEXT
from services.actions.arguments import EXPECTED, ITEM_TYPES, NO_STACK_NAME
from services.actions.definitions import Phase
from services.actions.durations import parse_duration
from services.actions.parameters import Parameters, used_phases
from services.actions.phase_reason import PhaseReason
from services.actions.reading import listed, path_of
from services.actions.signatures import Argument, ArgumentForm, ArgumentType, Signature
from services.actions.snapshots import is_snapshot_id
from services.actions.templates.errors import OperationError, TemplateError
from services.actions.templates.rendering import render_template
from services.actions.templates.template import parse_template
from services.actions.templates.values import Value, is_integer, text_of, type_name
from services.kinds.format.canonical import canonical_text
from services.kinds.format.fields import Pointer

LARGEST_ARGUMENTS = 4 << 20
"""Bytes of all rendered arguments of one phase, as JSON."""

_NO_SECRETS = frozenset({"secrets"})


class RenderingError(ValueError):
    """
    A template of a phase cannot be rendered, or gives a value that may not be passed.

    Attributes:
        reason: ``TEMPLATE`` or ``ARGUMENT_INVALID``.
    """

    def __init__(self, reason: PhaseReason, pointer: Pointer, problem: str) -> None:
        super().__init__(f"{path_of(pointer)}: {problem}")
        self.reason = reason


def render_arguments(phase: Phase, signature: Signature, parameters: Parameters) -> dict[str, Any]:
    """
    What *phase* passes to the function of *signature*: its arguments by name, with the defaults of those that it does
    not pass; one without a default is not there.

    Arguments of a call that the function makes itself stay templates.

    Raises:
        RenderingError: An argument has no value, or one that the signature does not allow.
    """
    renderer = _Renderer(parameters)
    values: dict[str, Any] = {}
    for argument in signature.arguments:
        template = phase.arguments.get(argument.name)
        pointer = ("args", argument.name)
        if argument.form is ArgumentForm.CALL_ARGUMENTS:
            value = template
        else:
            value = renderer.rendered(template, pointer, argument.takes_secrets)
            if value is not None:
                _check(argument, value, pointer)
        if value is None and argument.required:
            raise _invalid(pointer, f"{signature.name} needs {argument.name}, and this is null")
        if value is None:
            value = argument.default
        if value is not None:
            values[argument.name] = value
    return values


def render_condition(phase: Phase, parameters: Parameters) -> bool:
    """
    Whether *phase* runs.

    Raises:
        RenderingError: Its condition has no value, or one that is no bool.
    """
    if not phase.condition:
        return True
    value = _rendered_text(phase.condition, _without_secrets(parameters), ("if",))
    if isinstance(value, bool):
        return value
    raise RenderingError(PhaseReason.TEMPLATE, ("if",), f"must give a bool, and gives {type_name(value)}")


def render_artifact(name: str, templates: Mapping[str, str], parameters: Parameters) -> dict[str, str]:
    """
    The texts of an output artifact. A template that is one expression gives the text of its value, as within a text.

    Args:
        name: The name of the artifact.
        templates: Its templates by key.
        parameters: What they can use.

    Raises:
        RenderingError: A template has no value, one that is no text, or one that is too large.
    """
    usable = _without_secrets(parameters)
    return {key: _artifact_text(name, key, template, usable) for key, template in templates.items()}


def is_renderable(templates: Mapping[str, str], ended: Collection[str]) -> bool:
    """Whether all outputs that the templates of an artifact use are there: those of the phases that have *ended*."""
    return used_phases(templates) <= set(ended)


def _artifact_text(name: str, key: str, template: str, parameters: Parameters) -> str:
    pointer = ("outputArtifacts", name, "keyValue", key)
    value = _rendered_text(template, parameters, pointer)
    try:
        text = text_of(value)
    except OperationError as error:
        raise RenderingError(PhaseReason.TEMPLATE, pointer, error.text) from None
    size = len(text.encode(errors="replace"))
    if size > LARGEST_ARTIFACT_TEXT:
        problem = f"gives {size:,} bytes; at most {LARGEST_ARTIFACT_TEXT:,} are accepted"
        raise RenderingError(PhaseReason.TEMPLATE, pointer, problem)
    return text


class _Renderer:
    """Renders the arguments of one call, which are bounded together: a text can give more than it has."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._without_secrets = _without_secrets(parameters)
        self._size = 0

    def rendered(self, value: Value, pointer: Pointer, takes_secrets: bool) -> Value:
        """*value* with each text in it replaced by what it gives."""
        if isinstance(value, Mapping):
            return {key: self.rendered(item, (*pointer, key), takes_secrets) for key, item in value.items()}
        if isinstance(value, list):
            return [self.rendered(item, (*pointer, place), takes_secrets) for place, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        parameters = self._parameters if takes_secrets else self._without_secrets
        result = _rendered_text(value, parameters, pointer)
        try:
            self._size += len(canonical_text(result).encode())
        except TypeError:
            problem = "gives a value that JSON cannot hold: one that is nested too deeply, or half of a surrogate pair"
            raise _invalid(pointer, problem) from None
        if self._size > LARGEST_ARGUMENTS:
            raise _invalid(("args",), f"the rendered arguments have more than {LARGEST_ARGUMENTS:,} bytes")
        return result


def _without_secrets(parameters: Parameters) -> Parameters:
    return {root: value for root, value in parameters.items() if root not in _NO_SECRETS}


def _rendered_text(text: str, parameters: Parameters, pointer: Pointer) -> Value:
    try:
        return render_template(parse_template(text), parameters)
    except TemplateError as error:
        problem = f"column {error.column}: {error.text}"
        raise RenderingError(PhaseReason.TEMPLATE, pointer, problem) from None


def _invalid(pointer: Pointer, problem: str) -> RenderingError:
    return RenderingError(PhaseReason.ARGUMENT_INVALID, pointer, problem)


def _check(argument: Argument, value: Value, pointer: Pointer) -> None:
    """
    Check a rendered argument.

    Raises:
        RenderingError: It does not have its type, is none of its choices, or is out of bounds.
    """
    _check_type(argument.type, value, pointer)
    if argument.choices and value not in argument.choices:
        raise _invalid(pointer, f"must be one of {listed(argument.choices)}, and is none of them")
    if argument.form is ArgumentForm.STACK_NAME and not value:
        raise _invalid(pointer, NO_STACK_NAME)
    if argument.form is ArgumentForm.SNAPSHOT_ID and not is_snapshot_id(str(value)):
        raise _invalid(pointer, "must be the id of a snapshot, `sha256:` and 64 hexadecimal digits")
    least, most = argument.minimum, argument.maximum
    size = value if isinstance(value, int) else len(value) if isinstance(value, list | dict) else None
    if size is not None and ((least is not None and size < least) or (most is not None and size > most)):
        what = "must be" if isinstance(value, int) else "the number of items must be"
        bounds = f"at least {least:,}" if most is None else f"from {least or 0:,} to {most:,}"
        raise _invalid(pointer, f"{what} {bounds}")


def _check_type(of_type: ArgumentType, value: Value, pointer: Pointer) -> None:
    match of_type:
        case ArgumentType.ANY:
            pass
        case ArgumentType.STRING if isinstance(value, str):
            pass
        case ArgumentType.BOOL if isinstance(value, bool):
            pass
        case ArgumentType.INT if is_integer(value):
            pass
        case ArgumentType.DURATION if isinstance(value, str):
            if parse_duration(value) is None:
                raise _invalid(pointer, f"must be {EXPECTED[of_type]}, and is another text")
        case ArgumentType.LIST if isinstance(value, list):
            pass
        case ArgumentType.STRINGS | ArgumentType.INTS if isinstance(value, list):
            for item in value:
                _check_item(of_type, ITEM_TYPES[of_type], item, pointer)
        case ArgumentType.MAP if isinstance(value, dict):
            pass
        case ArgumentType.STRING_MAP if isinstance(value, dict):
            for item in value.values():
                _check_item(of_type, ArgumentType.STRING, item, pointer)
        case _:
            raise _invalid(pointer, f"must be {EXPECTED[of_type]}, and is {type_name(value)}")


def _check_item(of_type: ArgumentType, item_type: ArgumentType, item: Value, pointer: Pointer) -> None:
    """Check one item; its place is not named, as the key of a rendered mapping is a value, too."""
    try:
        _check_type(item_type, item, pointer)
    except RenderingError:
        raise _invalid(pointer, f"must be {EXPECTED[of_type]}, and has an item that is {type_name(item)}") from None
