"""A package that the store has, as a revision or as a snapshot: a plan of it is made without parsing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pkger.model.v1 import object_pb2

from services.core.model import Key
from services.packages.installed import InstalledPackage
from services.packages.package_text import Declaration, KeptPackage
from services.rpc.convert.objects import object_from_pb


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """
    The package of a revision or of a snapshot.

    Attributes:
        sources: Names of its sources.
        objects: Its objects.
        untouched: Keys that it leaves as they are; some of *objects* have such a key.
        has_package: False for a revision without a package.
        packages: The installed packages, by name; empty: the stack had none.
        declarations: The declarations of objects that several packages declare.
    """

    sources: Sequence[str]
    objects: list[object_pb2.Object]
    untouched: frozenset[Key]
    has_package: bool
    packages: tuple[InstalledPackage, ...] = ()
    declarations: Mapping[Key, tuple[Declaration, ...]] = field(default_factory=dict)

    def kept(self) -> KeptPackage:
        """The package as the store has it."""
        return KeptPackage(tuple(map(object_from_pb, self.objects)), self.untouched, self.packages, self.declarations)


NOT_STORED = StoredPackage((), [], frozenset(), has_package=False)
"""The stored package of a plan of sources, or of an uninstall."""
