"""The desired state of a plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pkger.planner.v1 import planner_pb2

from planner_svc.composition.full_names import package_of
from planner_svc.package_stack.model import PackagesAfter
from services.core.model import AfterUninstall, InventoryEntry, Key, OperationKind, Package


@dataclass(frozen=True, slots=True)
class Desired:
    """
    The desired state that a plan is made for.

    Attributes:
        package: The desired objects; empty: everything is removed.
        skip: Keys to skip; an empty name stands for all objects of the kind.
        is_end: Whether the stack is uninstalled: adopted resources then stay on the platform (docs/reference/engine.md,
            "Policies", on_delete).
        after_uninstall: Whether an uninstall keeps the stack.
        secret_keys: Keys of the secrets that the apply will supply.
        options: The options of the request. Which objects they skip is in *skip*.
        rollback_of: The revision whose package this is; 0: none.
        is_stored: Whether this is the package of a revision or of a snapshot: nobody parsed it for this plan.
        is_for_nameless: Whether the request names no stack: then nothing is removed, and resources of other stacks
            without a name are shared or taken over.
        packages: The installed packages afterwards; None: the stack has none, before or after.
    """

    package: Package
    skip: frozenset[Key] = field(default_factory=frozenset)
    is_end: bool = False
    secret_keys: frozenset[str] = field(default_factory=frozenset)
    options: planner_pb2.PlanOptions = field(default_factory=planner_pb2.PlanOptions)
    rollback_of: int = 0
    is_stored: bool = False
    after_uninstall: AfterUninstall = AfterUninstall.KEEP
    is_for_nameless: bool = False
    packages: PackagesAfter | None = None

    @property
    def operation_kind(self) -> OperationKind:
        """The kind of the operation that applies it."""
        if self.is_end:
            return OperationKind.UNINSTALL
        return OperationKind.ROLLBACK if self.rollback_of else OperationKind.APPLY

    @property
    def keeps_others(self) -> bool:
        """Whether objects of the stack that the package lacks stay as they are."""
        return self.is_for_nameless or self.options.keep_others

    @property
    def deletes_stack(self) -> bool:
        """Whether the stack is deleted with its resources."""
        return self.is_end and self.after_uninstall is AfterUninstall.DELETE

    @property
    def key_moves(self) -> Mapping[Key, Key]:
        """The new keys of recorded objects whose resource goes to the declaration of another package."""
        return self.packages.key_moves if self.packages else {}

    def ends(self, entry: InventoryEntry) -> bool:
        """Whether *entry* leaves with its stack or as its package is not there, rather than by a change of this one."""
        if self.is_end or self.packages is None:
            return self.is_end
        return package_of(entry.key.name) not in self.packages.names

    def is_suspended(self, key: Key) -> bool:
        """Whether *key* is of a suspended package: it is skipped, but labels count for what the others declare."""
        return self.packages is not None and package_of(key.name) in self.packages.suspended

    def skips(self, key: Key) -> bool:
        """Whether *key* is neither applied nor removed."""
        return bool(self.skip) and (key in self.skip or Key(key.kind, "") in self.skip)

    def skips_entry(self, entry: InventoryEntry) -> bool:
        """Whether *entry* is skipped; an entry with a pending deletion is skipped with its object."""
        return bool(self.skip) and (self.skips(entry.key) or self.skips(entry.object_key))
