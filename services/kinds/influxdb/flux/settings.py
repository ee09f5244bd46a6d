"""
The settings of an option record: values of the script, changed by the package (docs/reference/package-format.md,
"Parameter types" and "Lists of task options").
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.durations import canonical_duration, parse_go_duration
from services.kinds.format.field_table import Field, Table
from services.kinds.format.fields import Fault, Fields, described, found_text, text_of
from services.kinds.format.shapes import Free, Text
from services.kinds.influxdb.flux.expressions import TYPE_WORDS, expression, untyped_expression
from services.kinds.influxdb.flux.script import RecordLiteral

_LISTED_TYPES = {"int": "integer"} | {name: name for name in ("bool", "duration", "float", "string", "time")}

PARAMETER = Table(
    Field("key", Text(), "Name of the parameter in the option record of the script."),
    Field("default", Free({}), "Value when the caller supplies none."),
    Field("type", Text(vocabulary=tuple(sorted(_LISTED_TYPES))), "bool, duration, float, int, string or time."),
)
"""An entry of a list that changes the settings."""


@dataclass(frozen=True, slots=True)
class Setting:
    """
    One value of an option record, before anything is supplied for it.

    Attributes:
        name: Its key in the record.
        in_script: Whether the script has it; if not, only a list of the package does.
        literal_type: Type of the literal in the script; empty when it has none.
        listed_type: Type in the list; None when the list has none.
        default: Any tree; a duration in the script is its nanoseconds, or its text when negative.
        duration: The default as specs have it, when it is a duration literal, or a duration in the ``task`` list.
        fault: Why the default of the list cannot be used; empty when it can.
        default_entry: The entry of the list with the default; None: it is in the script, or there is none.
        type_entry: The entry of the list with the type; None: it is in the script, or there is none.
    """

    name: str
    in_script: bool = False
    literal_type: str = ""
    listed_type: str | None = None
    default: Any = None
    duration: str | None = None
    fault: str = ""
    default_entry: Fields | None = None
    type_entry: Fields | None = None

    @property
    def value_type(self) -> str:
        """The type in summaries; empty for no type and for an unknown one."""
        if self.listed_type is None:
            return self.literal_type
        return _LISTED_TYPES.get(self.listed_type.lower(), "")

    def expression(self, supplied: Any) -> str | None:
        """
        The new expression in the script.

        Args:
            supplied: The supplied value, any tree; None when there is none.

        Returns:
            None when the script stays unchanged: there is no value, it has no type (docs/reference/package-format.md,
            "Oddities", P18), or the value does not fit its type.
        """
        return self._default_expression() if supplied is None else self._expression(supplied)

    def supplied_misfit(self, supplied: Any) -> str:
        """Why a supplied value cannot be used, as the end of the sentence "the value ..."; empty when it can."""
        return self._misfit(described(supplied)) if supplied is not None and self._expression(supplied) is None else ""

    def default_misfit(self) -> Fault | None:
        """The fault of a default that does not fit its type, at the entry with the default, else with the type."""
        if self.default is None or self._keeps_script() or self._default_expression() is not None:
            return None
        if self.default_entry:
            reason = f"the default of {self.name!r} {self._misfit(described(self.default))}"
            return self.default_entry.fault(Code.PARAMETER_MISMATCH, "default", reason)
        # A value of the script fits the type of the script, so a misfit comes from the type of an entry.
        if not self.type_entry:
            return None
        content = described(self.default) if self.duration is None else f"the duration {self.duration}"
        reason = f"the value of {self.name!r} in the script {self._misfit(content)}; correct the type, or add a default"
        return self.type_entry.fault(Code.PARAMETER_MISMATCH, "type", reason)

    def _keeps_script(self) -> bool:
        """
        Whether no default changes the script, since it has no type (docs/reference/package-format.md, "Oddities", P18).
        """
        return self.in_script and not self.value_type

    def _expression(self, value: Any) -> str | None:
        return expression(self.value_type, value) if self.value_type else untyped_expression(value)

    def _default_expression(self) -> str | None:
        if self.default is None or self._keeps_script():
            return None
        if self.duration is None:
            return self._expression(self.default)
        if self.value_type == "duration":
            return self.duration
        # A duration is no number, though its default is one.
        return self._expression(self.default) if isinstance(self.default, str) else None

    def _misfit(self, content: str) -> str:
        shown_type = self.listed_type or self.literal_type
        because = f", as the type is {shown_type}" if self.value_type else ", as there is no type"
        return f"must be {TYPE_WORDS[self.value_type]}{because}; found {content}"


def settings_in(record: RecordLiteral) -> dict[str, Setting]:
    """The settings of a script by name; the last of several with one name counts."""
    return {
        entry.key: Setting(entry.key, True, entry.literal.value_type, None, entry.literal.value, entry.literal.duration)
        for entry in record.properties
        if entry.key and not entry.quoted
    }


def with_params(settings: dict[str, Setting], params: Iterable[Fields]) -> dict[str, Setting]:
    """The settings as a ``params`` list changes them; new ones come last."""
    changed = dict(settings)
    for entry in params:
        if name := entry.text("key"):
            setting = _typed(changed.get(name, Setting(name)), entry)
            changed[name] = _with_default(setting, entry) if "default" in entry.value else setting
    return changed


def with_task(settings: dict[str, Setting], task: Iterable[Fields]) -> dict[str, Setting]:
    """The settings as a ``task`` list changes them; durations are in the form of Go there."""
    changed = dict(settings)
    for entry in task:
        if name := entry.text("key"):
            setting = _typed(changed.get(name, Setting(name)), entry)
            if setting.listed_type == "duration":
                setting = _with_duration(setting, entry)
            elif "default" in entry.value:
                setting = _with_default(setting, entry)
            changed[name] = setting
    return changed


def _typed(setting: Setting, entry: Fields) -> Setting:
    listed = text_of(entry.value.get("type"))
    return setting if listed is None else replace(setting, listed_type=listed, type_entry=entry)


def _with_default(setting: Setting, entry: Fields) -> Setting:
    return replace(setting, default=entry.value["default"], duration=None, default_entry=entry)


def _with_duration(setting: Setting, entry: Fields) -> Setting:
    """The setting with the duration of the entry (docs/reference/package-format.md, "Lists of task options")."""
    default = entry.value.get("default")
    if default is None:
        return setting
    changed = _with_default(setting, entry)
    if not isinstance(default, str):
        return changed
    if (nanoseconds := parse_go_duration(default)) is not None:
        return replace(changed, default=nanoseconds, duration=canonical_duration(nanoseconds) or "0s")
    reason = (
        f"the default of {setting.name!r} in the list task must be a duration in hours and below, such as 24h or 1.5h"
    )
    return replace(setting, fault=f"{reason}; {found_text(entry, 'default')}")
