"""The packages of a stack as a plan changes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner_svc.resolution.model import Change, HeldBack
from services.core.model import Key
from services.packages.installed import InstalledPackage
from services.packages.package_text import Declaration


@dataclass(frozen=True, slots=True)
class PlannedPackage:
    """
    The change of one package.

    Attributes:
        change: What happens to it.
        record: What the record has of it afterwards; None: it is removed.
    """

    change: Change
    record: InstalledPackage | None


@dataclass(frozen=True, slots=True)
class PackagesAfter:
    """
    The packages of a stack after a plan.

    Attributes:
        installed: The installed packages, by name.
        planned: Their changes, in order; each package once.
        declarations: The declarations of objects that several packages declare.
        contents: The contents of the packages that change, by their digest.
        held_back: The packages that were to be updated, and are not at the version that comes first.
        key_moves: The new keys of recorded objects whose resource goes to the declaration of another package.
        names: The names of the installed packages.
        suspended: Those of them that are suspended.
    """

    installed: tuple[InstalledPackage, ...] = ()
    planned: tuple[PlannedPackage, ...] = ()
    declarations: Mapping[Key, tuple[Declaration, ...]] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)
    held_back: tuple[HeldBack, ...] = ()
    key_moves: Mapping[Key, Key] = field(default_factory=dict)
    names: frozenset[str] = field(init=False)
    suspended: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(each.name for each in self.installed))
        object.__setattr__(self, "suspended", frozenset(each.name for each in self.installed if each.is_suspended))
