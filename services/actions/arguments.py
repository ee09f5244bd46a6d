"""The arguments of a phase, checked against the signature of its function."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from services.actions.durations import parse_duration
from services.actions.reading import JsonPlace, Report, hint, listed, near, quoted, rewrite_to_nearest, shown
from services.actions.signatures import (
    Argument,
    ArgumentForm,
    ArgumentType,
    Excludes,
    Needs,
    OneOf,
    Recovery,
    Signature,
    SignatureTable,
)
from services.actions.template_rules import OPENING, Scope, TextForm, check_text, check_texts_within, usable_entries
from services.actions.templates.template import parse_template
from services.kinds.diagnostics import Code
from services.kinds.format.fields import Rewrite

LONGEST_KEY = 1_024
"""Bytes of a key of a storage location, and of a path below a folder."""

NO_STACK_NAME = "is empty; leave it out for the stack of the object"
"""Why an empty text is no name of a stack."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SERVER_FUNCTION = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[A-Za-z][A-Za-z0-9_]{0,62}")

EXPECTED: Mapping[ArgumentType, str] = {
    ArgumentType.STRING: "a text",
    ArgumentType.BOOL: "a bool",
    ArgumentType.INT: "a whole number",
    ArgumentType.DURATION: "a duration such as 1m30s",
    ArgumentType.LIST: "a list",
    ArgumentType.STRINGS: "a list of texts",
    ArgumentType.INTS: "a list of whole numbers",
    ArgumentType.MAP: "a mapping",
    ArgumentType.STRING_MAP: "a mapping of texts",
}
"""The types in reasons."""

ITEM_TYPES = {ArgumentType.STRINGS: ArgumentType.STRING, ArgumentType.INTS: ArgumentType.INT}
"""The types of the items of lists."""


class Call(NamedTuple):
    """
    A function with the place of its arguments.

    Attributes:
        signature: Its signature.
        place: The mapping of its arguments; null: there are none.
        path: How reasons name it: "args".
    """

    signature: Signature
    place: JsonPlace
    path: str = "args"

    @property
    def passed(self) -> dict[str, JsonPlace]:
        """The arguments that are not null, by name."""
        if not isinstance(self.place.value, dict):
            return {}
        return {name: place for name, place in self.place.entries().items() if place.value is not None}


def is_server_function(name: str) -> bool:
    """Whether *name* has the form of a function of a function server, of which nothing else is known here."""
    return _SERVER_FUNCTION.fullmatch(name) is not None


def is_path_below(text: str) -> bool:
    """Whether *text* is a path, or a key, that stays below the folder to which it is relative."""
    is_short = 1 <= len(text.encode(errors="replace")) <= LONGEST_KEY
    is_plain = "\\" not in text and not any(ord(each) < 32 or ord(each) == 127 for each in text)
    return is_short and is_plain and {"", ".", ".."}.isdisjoint(text.split("/"))


def check_variable_name(place: JsonPlace, report: Report, code: Code) -> None:
    """Report a key or text that is no name of an environment variable."""
    if not (isinstance(place.value, str) and _VARIABLE.fullmatch(place.value)):
        report.add(place, code, "the name of a variable must be letters, digits or _, with no digit first")


def called_function(call: Call, table: SignatureTable) -> Signature | None:
    """The function that the arguments of *call* name; None: they name none that is in *table*."""
    for argument in call.signature.arguments:
        if argument.form is ArgumentForm.FUNCTION:
            name = call.place.member(argument.name).value
            return table.find(name) if isinstance(name, str) else None
    return None


def runs_at_most_once(call: Call, table: SignatureTable) -> bool:
    """Whether the call, or those that it makes, certainly may not run twice."""
    signature = call.signature
    if signature.recovery is Recovery.ONCE:
        return True
    once = signature.once_with
    if once:
        value = call.place.member(once.argument).value
        return isinstance(value, str) and value in once.values
    inner = called_function(call, table)
    return inner is not None and any(
        runs_at_most_once(Call(inner, call.place.member(argument.name)), table)
        for argument in signature.arguments
        if argument.form is ArgumentForm.CALL_ARGUMENTS and inner is not signature
    )


def output_names(call: Call) -> Collection[str] | None:
    """The outputs of a call; None: an expression names some of them."""
    names = dict.fromkeys(call.signature.outputs)
    for argument in call.signature.output_arguments:
        value = call.place.member(argument).value
        if isinstance(value, dict | list):
            # The texts of a list, or the keys of a mapping.
            names |= dict.fromkeys(name for name in value if isinstance(name, str))
        elif value is not None:
            return None
    return None if any(OPENING in name for name in names) else names


def check_call(call: Call, scope: Scope, table: SignatureTable, report: Report) -> None:
    """Report all faults of the arguments of a call: missing, unknown, of a wrong type or value, against a rule."""
    arguments = {argument.name: argument for argument in call.signature.arguments}
    if not isinstance(call.place.value, dict | None):
        report.add_wrong_type(call.place, "a mapping of arguments")
        return
    for name, place in (call.place.entries() if call.place.value else {}).items():
        argument = arguments.get(name)
        if argument is None:
            reason = f"{call.signature.name} has no argument {quoted(name)}; {hint(name, arguments, 'arguments')}"
            report.add(place.key, Code.ARGUMENT_UNKNOWN, reason, rewrite_to_nearest(name, arguments))
        elif place.value is not None:
            _ArgumentCheck(call, argument, _scope_of(call, argument, scope), table, report).check(place)
    for name, argument in arguments.items():
        if argument.required and call.place.member(name).value is None:
            report.add(call.place.member(name), Code.ARGUMENT_MISSING, f"{call.signature.name} needs {name}")
    _check_rules(call, report)


def check_arguments_without_signature(place: JsonPlace, scope: Scope, report: Report) -> None:
    """Report the faults of arguments whose function is not known here: only of templates, which may use anything."""
    if isinstance(place.value, dict):
        check_texts_within(place, replace(scope, takes_secrets=True, has_item=True), report)
    else:
        report.add_wrong_type(place, "a mapping of arguments")


def _scope_of(call: Call, argument: Argument, scope: Scope) -> Scope:
    """The scope of the templates in one argument."""
    takers = [each.name for each in call.signature.arguments if each.takes_secrets]
    remedy = f"takes secrets in {', '.join(takers)}" if takers else "takes no secrets"
    return replace(
        scope,
        place=f"{call.path}.{argument.name}",
        takes_secrets=argument.takes_secrets,
        remedy=f"{call.signature.name} {remedy}",
        has_item=scope.has_item or argument.form is ArgumentForm.CALL_ARGUMENTS,
    )


def _check_rules(call: Call, report: Report) -> None:
    passed = call.passed
    for rule in call.signature.rules:
        match rule:
            case OneOf(names, condition):
                if not condition or condition in passed:
                    _check_one_of(call, names, condition, report)
            case Needs(name, others):
                for other in others if name in passed else ():
                    if other not in passed:
                        report.add(call.place.member(other), Code.ARGUMENT_MISSING, f"{name} needs {other}, too")
            case Excludes(name, others):
                for other in others if name in passed else ():
                    if other in passed:
                        report.add(passed[other], Code.ARGUMENT_INVALID, f"does not go with {name}; remove one of them")


def _check_one_of(call: Call, names: tuple[str, ...], condition: str, report: Report) -> None:
    places = [call.place.member(name) for name in names]
    present = [place for place in places if place.value is not None and place.value is not False]
    if not present:
        reason = f"{condition or call.signature.name} needs {'one of ' if names[1:] else ''}{' or '.join(names)}"
        report.add(call.place.member(names[0]), Code.ARGUMENT_MISSING, reason)
    for place in present[1:]:
        reason = f"only one of {', '.join(names)} can be passed; remove all but one"
        report.add(place, Code.ARGUMENT_INVALID, reason)


class _ArgumentCheck(NamedTuple):
    """The check of one argument of a call."""

    call: Call
    argument: Argument
    scope: Scope
    table: SignatureTable
    report: Report

    def check(self, place: JsonPlace) -> None:
        """Report the faults of the argument."""
        match self.argument.form:
            case ArgumentForm.COMMAND:
                self._check_command(place)
            case ArgumentForm.FUNCTION:
                self._check_function(place)
            case ArgumentForm.CALL_ARGUMENTS:
                self._check_inner_call(place)
            case _:
                self._check_type(place, self.argument.type)

    def _fault(self, place: JsonPlace, expected: str, rewrite: Rewrite | None = None, remedy: str = "") -> None:
        # What a person wrote in place of a secret may be one.
        problem = "" if self.argument.takes_secrets else f", found {shown(place.value)}"
        self.report.add(place, Code.ARGUMENT_INVALID, f"must be {expected}{problem}{remedy}", rewrite)

    def _check_type(self, place: JsonPlace, of_type: ArgumentType) -> None:
        value = place.value
        if isinstance(value, str):
            form = check_text(place, self.scope, self.report)
            if form not in (None, TextForm.EXPRESSION):
                self._check_literal_text(place, of_type, is_literal=form is TextForm.LITERAL)
            return
        match of_type:
            case ArgumentType.ANY:
                check_texts_within(place, self.scope, self.report)
            case ArgumentType.BOOL if isinstance(value, bool):
                pass
            case ArgumentType.INT if isinstance(value, int) and not isinstance(value, bool):
                self._check_bounds(place, value, "the number")
            case ArgumentType.LIST if isinstance(value, list):
                self._check_bounds(place, len(value), "the number of items")
                check_texts_within(place, self.scope, self.report)
            case ArgumentType.STRINGS | ArgumentType.INTS if isinstance(value, list):
                for item in place.items():
                    self._check_type(item, ITEM_TYPES[of_type])
            case ArgumentType.MAP if isinstance(value, dict):
                self._check_entries(place, ArgumentType.ANY)
            case ArgumentType.STRING_MAP if isinstance(value, dict):
                self._check_entries(place, ArgumentType.STRING)
            case ArgumentType.STRING if isinstance(value, int | float) and not isinstance(value, bool):
                self._fault(place, "a text", Rewrite(None), "; put it in quotes")
            case _:
                self._fault(place, EXPECTED[of_type])

    def _check_entries(self, place: JsonPlace, of_type: ArgumentType) -> None:
        form = self.argument.form
        for entry in usable_entries(place, self.report).values():
            if form is ArgumentForm.VARIABLES:
                check_variable_name(entry.key, self.report, Code.ARGUMENT_INVALID)
            if form is ArgumentForm.PATH_KEYS:
                self._check_path(entry.key)
            self._check_type(entry, of_type)

    def _check_literal_text(self, place: JsonPlace, of_type: ArgumentType, is_literal: bool) -> None:
        """Check a text that is more than one expression, so that its type is certain."""
        if of_type is ArgumentType.DURATION:
            if is_literal and parse_duration(place.value) is None:
                self._fault(place, EXPECTED[of_type])
        elif of_type not in (ArgumentType.STRING, ArgumentType.ANY):
            self._fault(place, EXPECTED[of_type])
        elif is_literal and self.argument.choices and place.value not in self.argument.choices:
            meant = near(place.value, self.argument.choices)
            self._fault(place, f"one of {listed(self.argument.choices)}", Rewrite(meant) if meant else None)
        elif self.argument.form is ArgumentForm.STACK_NAME and not place.value:
            self.report.add(place, Code.ARGUMENT_INVALID, NO_STACK_NAME)
        elif self.argument.form in (ArgumentForm.STORAGE_KEY, ArgumentForm.PATH_VALUES):
            self._check_path(place)

    def _check_path(self, place: JsonPlace) -> None:
        # What an expression gives is checked when it is rendered; until then it is a name.
        parts = parse_template(place.value).parts
        if not is_path_below("".join(part if isinstance(part, str) else "x" for part in parts)):
            self._fault(place, f"a relative path of 1 to {LONGEST_KEY:,} bytes, without parts that are empty, . or ..")

    def _check_bounds(self, place: JsonPlace, number: int, what: str) -> None:
        least, most = self.argument.minimum or 0, self.argument.maximum
        if number < least or (most is not None and number > most):
            bounds = f"at least {least:,}" if most is None else f"from {least:,} to {most:,}"
            self.report.add(place, Code.ARGUMENT_INVALID, f"{what} must be {bounds}, and is {number:,}")

    def _check_command(self, place: JsonPlace) -> None:
        if not isinstance(place.value, list):
            self._fault(place, "a list: the name of a command, then its arguments")
            return
        if not place.value:
            self.report.add(place, Code.ARGUMENT_INVALID, "is empty; write the name of a command, then its arguments")
            return
        first, *others = place.items()
        name = first.value
        if not isinstance(name, str) or not name or "/" in name or OPENING in name:
            self._fault(first, "the name of a command, without a path and without expressions")
        for other in others:
            self._check_type(other, ArgumentType.STRING)

    def _check_inner_call(self, place: JsonPlace) -> None:
        inner = called_function(self.call, self.table)
        if inner is None or inner.name == self.call.signature.name:
            check_arguments_without_signature(place, self.scope, self.report)
        else:
            path = f"{self.call.path}.{self.argument.name}"
            check_call(Call(inner, place, path), self.scope, self.table, self.report)

    def _check_function(self, place: JsonPlace) -> None:
        own, name = self.call.signature.name, place.value
        names = [each for each in self.table.names if each != own]
        if isinstance(name, str) and (name in names or is_server_function(name)):
            return
        word = name if isinstance(name, str) else ""
        reason = (
            f"must be the name of a function other than {own}, found {shown(name)}; {hint(word, names, 'functions')}"
        )
        self.report.add(place, Code.FUNCTION_NOT_FOUND, reason, rewrite_to_nearest(word, names))
