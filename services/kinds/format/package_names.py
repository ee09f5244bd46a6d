"""Names of objects of other packages, ``PACKAGE.NAME`` (docs/reference/package-format.md, "Other packages")."""

import re
from collections.abc import Collection
from typing import NamedTuple

from services.kinds.diagnostics import Code
from services.kinds.format.fields import Fault, Pointer, Rewrite
from services.kinds.format.names import is_meta_name
from services.kinds.format.shapes import nearest

PACKAGE_NAME_FORM = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
"""The form of the name of a package."""

OF_OTHERS = "or PACKAGE.NAME of a package that the manifest requires"
"""What a field that names an object takes besides, for its description."""

_PACKAGE_NAME = re.compile(PACKAGE_NAME_FORM)
_SHOWN_NAMES = 5
"""How many names a reason lists at most."""


class NameElsewhere(NamedTuple):
    """The name of an object of another package; no ``metadata.name`` has a dot, so nothing else has its form."""

    package: str
    name: str


def is_package_name(text: str) -> bool:
    """Whether *text* can be the name of a package."""
    return _PACKAGE_NAME.fullmatch(text) is not None


def name_elsewhere(text: str) -> NameElsewhere | None:
    """The parts of *text* if it names an object of another package; else None."""
    package, dot, name = text.partition(".")
    return NameElsewhere(package, name) if dot and is_package_name(package) and is_meta_name(name) else None


def fault_elsewhere(
    name: NameElsewhere, is_literal: bool, required: Collection[str], path: str, pointer: Pointer
) -> Fault | None:
    """
    The fault of a field that names an object of another package; None: it may.

    Args:
        name: The name in the field.
        is_literal: Whether the source has the name itself, not a reference to a value.
        required: The packages that the manifest requires.
        path: The path of the field.
        pointer: The pointer to it.
    """
    written = f"{name.package}.{name.name}"
    if not is_literal:
        reason = f"an environment value gives the name {written!r} of an object of another package; write it as text"
        return Fault(Code.PACKAGE_NAMED_BY_VALUE, path, reason, pointer)
    if name.package in required:
        return None
    alike = nearest(name.package, sorted(required))
    names = sorted(required)
    has = ", ".join(names[:_SHOWN_NAMES]) + (" ..." if names[_SHOWN_NAMES:] else "") or "no package"
    hint = f"did you mean {alike!r}?" if alike else "add it to spec.requires of the manifest"
    reason = f"{written!r} is an object of the package {name.package!r}, and the manifest requires {has}; {hint}"
    return Fault(
        Code.PACKAGE_NOT_REQUIRED, path, reason, pointer, rewrite=Rewrite(f"{alike}.{name.name}") if alike else None
    )
