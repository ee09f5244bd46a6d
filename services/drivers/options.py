"""Reads the options in a row of the platforms file into a dataclass of its driver."""

from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

from services.platforms import Platform
from services.rpc.entrances import CannotServe

T = TypeVar("T")

_WORDS: dict[Any, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
"""Name of each type in messages."""


class OptionsInvalid(CannotServe):
    """The driver does not accept the options of its platform; the message lists every problem, and shows no value."""

    def __init__(self, platform: Platform, problems: list[str]) -> None:
        super().__init__(f"{platform.row}: {'; '.join(problems)}")


def read_options(cls: type[T], platform: Platform) -> T:
    """
    Read the options of *platform*.

    Args:
        cls: A dataclass whose fields are the options of the driver: ``str``, ``int``, ``float`` or ``bool``. A
            field without a default is required.
        platform: A row of the platforms file.

    Raises:
        OptionsInvalid: An option is unknown, missing or of another type.
    """
    types, options = get_type_hints(cls), platform.options
    names = ", ".join(sorted(types)) or "none"
    problems = [f"unknown option {name!r}, its driver has: {names}" for name in options if name not in types]
    for option in fields(cls):  # type: ignore[arg-type]
        type_ = types[option.name]
        if option.name not in options:
            if option.default is MISSING:
                problems.append(f"option {option.name!r} is missing, write {_WORDS[type_]}")
        elif not _is(options[option.name], type_):
            problems.append(f"option {option.name!r}: write {_WORDS[type_]}")
    if problems:
        raise OptionsInvalid(platform, problems)
    return cls(**options)


def _is(value: Any, type_: Any) -> bool:
    # In Python True is an int; and a whole number is valid where a number is expected.
    return type(value) is type_ or (type_ is float and type(value) is int)
