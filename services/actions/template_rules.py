"""What validation says of a template: whether it can be read, and what its expressions may use where it stands."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from services.actions.definitions import NO_OBJECT, DeclaredInputs
from services.actions.reading import JsonPlace, Report, declared_hint, hint, near, quoted
from services.actions.templates.errors import TemplateError
from services.actions.templates.references import Reference, references
from services.actions.templates.template import parse_template
from services.kinds.diagnostics import Code
from services.kinds.format.fields import Rewrite

OPENING = "{{"
"""What a text without any expression does not have."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Names = Collection[str] | None
"""Names that an expression may use; None: they could not be read, so nothing is said of them."""


class TextForm(Enum):
    """How a text becomes a value."""

    LITERAL = "no expression"
    EXPRESSION = "exactly one expression, which gives a value of any type"
    MIXED = "a text with the values of expressions"


class PhaseOutputs(NamedTuple):
    """
    What other templates may use of a phase.

    Attributes:
        position: Its place in the order of phases.
        names: Its outputs; None: any, as its function is not known here, or names them by an expression.
        is_conditional: Whether it may be skipped.
    """

    position: int
    names: Names
    is_conditional: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """
    Where a template stands.

    Attributes:
        declared: What its action declares.
        phases: The phases of its action by name.
        visible: The phases with a lower position come before it.
        has_unnamed: Whether a phase has no name that could be read, so that any name may be that of a phase.
        phase: The phase that has it; empty: an output artifact has it.
        in_defer_phase: Whether the phase runs whatever happened to others.
        place: The field, as a reason names it: "args.command".
        takes_secrets: Whether secrets may be used.
        remedy: Why secrets may not, or where they may, as the end of a reason.
        has_item: Whether it is rendered once for each item of a list.
    """

    declared: DeclaredInputs
    phases: Mapping[str, PhaseOutputs]
    visible: int
    has_unnamed: bool
    phase: str = ""
    in_defer_phase: bool = False
    place: str = "an output artifact"
    takes_secrets: bool = False
    remedy: str = "artifacts are stored"
    has_item: bool = False


class _Problem(NamedTuple):
    """What is wrong with a reference; *word* is to be replaced by *meant* where one is near."""

    code: Code
    text: str
    word: str = ""
    meant: str = ""


def check_text(place: JsonPlace, scope: Scope, report: Report) -> TextForm | None:
    """
    Check a text that is a template, and report at most one fault.

    Returns:
        How it becomes a value; None after a fault.
    """
    text: str = place.value
    if OPENING not in text:
        return TextForm.LITERAL
    try:
        template = parse_template(text)
    except TemplateError as error:
        report.add(place, Code.TEMPLATE_INVALID, f"column {error.column}: {error.text}")
        return None
    for reference in references(template):
        problem = _problem(reference, scope)
        if problem:
            rewrite = _corrected(text, reference, problem) if problem.meant else None
            report.add(place, problem.code, f"column {reference.column}: {problem.text}", rewrite)
            return None
    if template.is_literal:
        return TextForm.LITERAL
    return TextForm.EXPRESSION if template.is_single_expression else TextForm.MIXED


def check_condition(place: JsonPlace, scope: Scope, report: Report) -> str:
    """The condition of a phase; empty after a fault."""
    if not isinstance(place.value, str):
        report.add_wrong_type(place, "a text that is one expression, such as {{ options.mode == 'full' }}")
        return ""
    form = check_text(place, scope, report)
    if form is TextForm.EXPRESSION:
        return place.value
    if form:
        reason = "must be exactly one expression that gives a bool, with nothing before or after it"
        report.add(place, Code.TEMPLATE_INVALID, reason)
    return ""


def check_texts_within(place: JsonPlace, scope: Scope, report: Report) -> None:
    """Check all texts in a value of any type; what lies below a key with an expression is not looked at."""
    value = place.value
    if isinstance(value, str):
        check_text(place, scope, report)
    elif isinstance(value, list):
        for item in place.items():
            check_texts_within(item, scope, report)
    elif isinstance(value, dict):
        for entry in usable_entries(place, report).values():
            check_texts_within(entry, scope, report)


def usable_entries(place: JsonPlace, report: Report) -> dict[str, JsonPlace]:
    """The entries of a mapping; a key with an expression is reported, and its entry left out."""
    entries = place.entries()
    for key in [key for key in entries if OPENING in key]:
        reason = "a key is no template; write it as a literal, and use expressions in values only"
        report.add(entries.pop(key).key, Code.TEMPLATE_INVALID, reason)
    return entries


def _problem(reference: Reference, scope: Scope) -> _Problem | None:
    declared = scope.declared
    match reference.root:
        case "phases":
            return _phase_problem(reference, scope)
        case "options":
            return _undeclared(reference, declared.options, "option", "options")
        case "configMaps":
            return _undeclared(reference, declared.config_maps, "config map", "configMapNames")
        case "artifacts":
            return _undeclared(reference, declared.artifacts, "input artifact", "inputArtifactNames")
        case "secrets":
            return _secret_problem(reference, scope)
        case "failure" if not scope.in_defer_phase:
            return _Problem(Code.VALUE_MAY_BE_MISSING, "failure is there in a deferPhase only")
        case "item" if not scope.has_item:
            return _Problem(Code.VALUE_MAY_BE_MISSING, "item is there in args.args of ForEach only")
        case "object" | "stack" if declared.kind == NO_OBJECT and not reference.is_guarded:
            path = _written(reference)
            text = f"{path} may not be there, as the kind of the action is {NO_OBJECT}; write default({path}, …)"
            return _Problem(Code.VALUE_MAY_BE_MISSING, text)
    return None


def _first_name(reference: Reference) -> str | None:
    """The literal name after the root; None: there is none."""
    name = reference.members[0] if reference.members else None
    return name if isinstance(name, str) else None


def _without_name(reference: Reference) -> _Problem:
    text = f"{reference.root} needs a literal name: write {reference.root}.NAME"
    return _Problem(Code.REFERENCE_NOT_FOUND, text)


def _undeclared(reference: Reference, names: Names, noun: str, field: str) -> _Problem | None:
    name = _first_name(reference)
    if name is None:
        return _without_name(reference)
    if names is None or name in names:
        return None
    text = f"the action declares no {noun} {quoted(name)} in {field}; {declared_hint(name, names)}"
    return _Problem(Code.REFERENCE_NOT_FOUND, text, name, near(name, names))


def _secret_problem(reference: Reference, scope: Scope) -> _Problem | None:
    if not scope.takes_secrets:
        text = f"{_written(reference)} may not stand in {scope.place}; {scope.remedy}"
        return _Problem(Code.SECRET_MISPLACED, text)
    return _undeclared(reference, scope.declared.secrets, "secret", "secretNames")


def _phase_problem(reference: Reference, scope: Scope) -> _Problem | None:
    name = _first_name(reference)
    if name is None:
        return _without_name(reference)
    phase = scope.phases.get(name)
    if phase is None or phase.position >= scope.visible:
        return _unknown_phase(name, phase, scope)
    if reference.members[1:2] != ("output",):
        word = reference.members[1] if reference.members[1:] else None
        text = f"of a phase only its output can be used: write phases.{name}.output.NAME"
        meant = near(word, ["output"]) if isinstance(word, str) else ""
        return _Problem(Code.REFERENCE_NOT_FOUND, text, str(word), meant)
    output = reference.members[2] if reference.members[2:] else None
    if isinstance(output, str) and phase.names is not None and output not in phase.names:
        text = f"phase {quoted(name)} has no output {quoted(output)}; {hint(output, phase.names, 'outputs')}"
        return _Problem(Code.REFERENCE_NOT_FOUND, text, output, near(output, phase.names))
    return None if reference.is_guarded else _unguarded(reference, phase, scope)


def _unknown_phase(name: str, phase: PhaseOutputs | None, scope: Scope) -> _Problem | None:
    if phase is None and scope.has_unnamed:
        return None
    before = f" before {quoted(scope.phase)}" if scope.phase else ""
    if phase is not None:
        remedy = "use outputs of earlier phases only" if name != scope.phase else "a phase cannot use its own outputs"
        return _Problem(Code.REFERENCE_NOT_FOUND, f"there is no phase {quoted(name)}{before}; {remedy}")
    visible = [each for each, outputs in scope.phases.items() if outputs.position < scope.visible]
    text = f"there is no phase {quoted(name)}{before}; {hint(name, visible, 'phases')}"
    return _Problem(Code.REFERENCE_NOT_FOUND, text, name, near(name, visible))


def _unguarded(reference: Reference, phase: PhaseOutputs, scope: Scope) -> _Problem | None:
    if not scope.in_defer_phase and not phase.is_conditional:
        return None
    path = _written(reference)
    why = " in a deferPhase" if scope.in_defer_phase else ", as its phase has an if and may be skipped"
    return _Problem(Code.VALUE_MAY_BE_MISSING, f"{path} may not be there{why}; write default({path}, …)")


def _written(reference: Reference) -> str:
    """The path of a reference, as an expression."""
    path = reference.root
    for member in reference.members:
        if isinstance(member, str) and _NAME.fullmatch(member):
            path += f".{member}"
        else:
            path += "[…]" if member is None else f"[{json.dumps(member, ensure_ascii=False)}]"
    return path[:120]


def _corrected(text: str, reference: Reference, problem: _Problem) -> Rewrite | None:
    """The template with the word that was probably meant."""
    start = text.find(problem.word, reference.column - 1 + len(reference.root))
    if start < 0:
        return None
    return Rewrite(text[:start] + problem.meant + text[start + len(problem.word) :])
