"""The values of an option record: what the script says, and what the package changes (packages.md 7.3 and 7.5)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from services.kinds.canonical import plain
from services.kinds.durations import parse_go_duration
from services.kinds.fields import Fields, found_text, text_of
from services.kinds.flux.expressions import duration_expression, expression, untyped_expression
from services.kinds.flux.script import Record
from services.kinds.shapes import Free, Text
from services.kinds.tables import Field, Table

_LISTED_TYPES = {"int": "integer"} | {name: name for name in ("bool", "duration", "float", "string", "time")}

PARAMETER = Table(
    Field("key", Text(), "Name of the parameter in the option record of the script."),
    Field("default", Free({}), "Value when the caller supplies none."),
    Field("type", Text(known=tuple(sorted(_LISTED_TYPES))), "bool, duration, float, int, string or time."),
)
"""An entry of a list that changes the settings."""


@dataclass(frozen=True, slots=True)
class Setting:
    """
    One value of an option record, before anything is supplied for it.

    Attributes:
        name: Its key in the record.
        in_script: Whether the script has it; if not, only a list does.
        literal_type: Type of the literal in the script; empty when that has none.
        listed_type: Type as the list gives it; None when it gives none.
        default: Any tree; a duration in the script is its nanoseconds, or its text when negative.
        nanoseconds: Length of the default, when it comes from a duration literal or is one by the ``task`` list.
        fault: Why the list's default cannot be used; empty when it can.
    """

    name: str
    in_script: bool = False
    literal_type: str = ""
    listed_type: str | None = None
    default: Any = None
    nanoseconds: int | None = None
    fault: str = ""

    @property
    def value_type(self) -> str:
        """The type as summaries tell it; empty for none and for unknown ones."""
        if self.listed_type is None:
            return self.literal_type
        return _LISTED_TYPES.get(self.listed_type.lower(), "")

    def expression(self, supplied: Any) -> str | None:
        """
        The expression that the script gets.

        Args:
            supplied: The value for it, as JSON; None when there is none.

        Returns:
            None when the script keeps what it has: nobody says a value, or nobody says its type (packages.md, P18).
        """
        if supplied is not None:
            return expression(self.value_type, supplied) if self.value_type else untyped_expression(supplied)
        default = plain(self.default)
        if self.in_script and (default is None or not self.value_type):
            return None
        if not self.value_type:
            return untyped_expression(default)
        if self.nanoseconds is None:
            return expression(self.value_type, default)
        if self.value_type == "duration":
            return duration_expression(self.nanoseconds)
        # A length of time is no number, though it is told as one.
        return expression(self.value_type, default if isinstance(default, str) else None)


def settings_in(record: Record) -> dict[str, Setting]:
    """The settings of a script by name; of two with one name the last."""
    return {
        entry.key: Setting(
            entry.key, True, entry.literal.value_type, None, entry.literal.value, entry.literal.nanoseconds
        )
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
    return setting if listed is None else replace(setting, listed_type=listed)


def _with_default(setting: Setting, entry: Fields) -> Setting:
    return replace(setting, default=entry.value["default"], nanoseconds=None)


def _with_duration(setting: Setting, entry: Fields) -> Setting:
    """The setting with the duration of the entry; a default that is no text does not count (packages.md 7.5)."""
    default = entry.value.get("default")
    if not isinstance(default, str):
        return setting
    if (nanoseconds := parse_go_duration(default)) is not None:
        return replace(setting, default=nanoseconds, nanoseconds=nanoseconds)
    reason = (
        f"the default of {setting.name!r} in the list task must be a duration in hours and below, such as 24h or 1.5h"
    )
    return replace(setting, fault=f"{reason}; {found_text(entry, 'default')}")
