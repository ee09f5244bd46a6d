"""
The nouns of pkger (docs/glossary.md) as frozen values.

Those of which a large plan has tens of thousands are named tuples, which are made several times as fast as dataclasses.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, NamedTuple

DEFAULT_PLATFORM = "embedded"
DEFAULT_ORG = "default"

LABEL = "Label"
"""The kind that associations name (docs/reference/package-format.md, "Associations")."""

SECRET = "Secret"  # noqa: S105 - the name of a kind
"""The kind in the keys of steps that write secrets; no object and no resource has it. The id of a secret is its key."""


class Key(NamedTuple):
    """Identity of an object in a package and in a stack; sorts by kind, then name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Target:
    """Where resources live."""

    platform: str = DEFAULT_PLATFORM
    org: str = DEFAULT_ORG


DEEPEST_SPEC = 254
"""Levels of lists and objects inside each other that a spec may have: as many as canonical text can be written with."""


class UnreadableSpecError(ValueError):
    """A driver gave a spec that is none; the message says what it is."""


class Spec:
    """
    Normalised content as canonical JSON text, with the display name beside it.

    Equality is equality of the text: unlike Python's, it tells ``true`` from ``1`` and ``1`` from ``1.0``. The text is
    read only when somebody looks into it. Made by ``services.kinds.format.canonical``, the only place that writes
    canonical text, and from messages of services that have it from there.

    Attributes:
        text: The canonical text.
        display_name: The name that people and the platform know the resource by.
    """

    __slots__ = ("_value", "display_name", "text")

    def __init__(self, text: str, display_name: str, value: Mapping[str, Any] | None = None) -> None:
        """*value* is what *text* says, where that is known already."""
        self.text = text
        self.display_name = display_name
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Spec({self.text})"

    @property
    def value(self) -> Mapping[str, Any]:
        """
        The content; nobody changes it.

        Raises:
            UnreadableSpecError: The text, which came from a driver, is no JSON object.
        """
        if self._value is None:
            self._value = read_object(self.text)
        return self._value

    def at(self, pointer: str) -> Any:
        """What stands at *pointer*, which goes through objects only; None when nothing does."""
        found: Any = self.value
        for key in pointer.split("/")[1:]:
            found = found.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        return found


def read_object(text: str) -> Mapping[str, Any]:
    """
    Read a spec.

    Raises:
        UnreadableSpecError: *text* is no JSON object.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:
            # Half of a surrogate pair is no character, and cannot be written.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise UnreadableSpecError(f"a spec is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise UnreadableSpecError("a spec is no JSON object")
    if _depth(value) > DEEPEST_SPEC:
        raise UnreadableSpecError(f"a spec is nested deeper than {DEEPEST_SPEC} levels")
    return value


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON value")


def _depth(value: Any) -> int:
    """Levels of lists and objects in *value*."""
    depth, level = 0, [value]
    while level:
        depth += 1
        items = (item for each in level for item in (each.values() if isinstance(each, dict) else each))
        level = [item for item in items if isinstance(item, dict | list)]
    return depth


@dataclass(frozen=True, slots=True)
class EnvReference:
    """
    A place whose value comes from the caller's environment values; ``None`` stands for JSON null.

    ``value_type`` is that of a parameter of a query (docs/reference/package-format.md, "Parameter types"), else empty.
    """

    resource_field: str
    env_key: str
    value: Any
    default: Any
    value_type: str = ""


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """
    A place where the source of an object says something else than its spec: a reference, or a query with parameters.

    Attributes:
        pointer: RFC 6901 pointer into the object as a source has it.
        text: The value there, as canonical JSON.
    """

    pointer: str
    text: str


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source; line and column count from 1, 0 means unknown."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Object(NamedTuple):
    """
    One declared resource, normalised.

    Attributes:
        key: Its identity within the package.
        api_version: As written.
        spec: Its content.
        associations: Labels, sorted by name.
        env_references: Where it refers to environment values.
        written: Where its source says something else than the spec, sorted by pointer.
        location: Its first character in its source; None where nobody knows. No part of what the object says.
    """

    key: Key
    api_version: str
    spec: Spec
    associations: tuple[Key, ...] = ()
    env_references: tuple[EnvReference, ...] = ()
    written: tuple[WrittenValue, ...] = ()
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Package:
    """Objects with unique keys, in the order of their sources."""

    objects: tuple[Object, ...]
    sources: tuple[str, ...] = ()


class Severity(Enum):
    """How much a violation matters."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"


class Position(NamedTuple):
    """A line and a column of a source, counted from 1; 0 means unknown."""

    line: int = 0
    column: int = 0


UNKNOWN_POSITION = Position()


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that a violation is about; ``text`` is one sentence about it."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the characters from ``location`` up to ``end``, which stands behind the last of them, with ``text``."""

    location: Location
    end: Position
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to correct a violation; ``is_preferred``: it is most likely what was meant."""

    title: str
    edits: tuple[Edit, ...]
    is_preferred: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """
    One rule of the package format that an object breaks, or something that looks like a mistake.

    Attributes:
        kind: Kind of the object.
        path: The field, as docs/reference/package-format.md, "Violations" writes it.
        reason: One sentence: what is wrong, and what to write instead.
        location: Where what is marked begins.
        code: Which rule; a code of ``services.kinds.diagnostics``.
        severity: How much it matters.
        end: Behind the last character that is marked, in the first line of what is marked at most.
        related: Other places that it is about.
        fixes: Ways to correct it.
    """

    kind: str
    path: str
    reason: str
    location: Location
    code: str = ""
    severity: Severity = Severity.ERROR
    end: Position = UNKNOWN_POSITION
    related: tuple[Related, ...] = ()
    fixes: tuple[Fix, ...] = ()


class Credential(NamedTuple):
    """
    A place where a package holds a credential, or takes it from an environment value, instead of naming a secret.

    Attributes:
        key: The object.
        pointer: RFC 6901 pointer into its spec.
        location: Where that stands in its source.
    """

    key: Key
    pointer: str
    location: Location


@dataclass(frozen=True, slots=True)
class Reference:
    """A place of a spec, by RFC 6901 pointer, that stands for another resource: its kind and id."""

    pointer: str
    kind: str
    id: str


ResourceKey = tuple[str, str]
"""Kind and id of a resource."""


class Resource(NamedTuple):
    """What a platform holds; ``label_ids`` sorted, ``references`` by pointer and only to what exists."""

    kind: str
    id: str
    spec: Spec
    label_ids: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()


class WantedSpec(NamedTuple):
    """
    A spec that is to be written.

    Attributes:
        kind: Its kind.
        resource_id: The resource that it is written to; empty for one that is still to be created.
        spec: The spec.
        references: What it is to refer to; ids are empty where that is still to be created.
    """

    kind: str
    resource_id: str
    spec: Spec
    references: tuple[Reference, ...] = ()


class Origin(Enum):
    """How a resource came to a stack."""

    CREATED = "created"
    ADOPTED = "adopted"
    SHARED = "shared"
    """Another stack owns it; this one uses it."""


class Baseline(NamedTuple):
    """
    What the platform held of a resource right after its stack wrote it, or took it as it is.

    Attributes:
        key: Key of its entry.
        spec: The spec as canonical JSON text; empty where only labels were written: it is then as before.
        references: Its references, sorted by pointer.
        missing_labels: The labels of its object that were not attached, as somebody decided so, sorted; all others of
            its entry were.
    """

    key: Key
    spec: str
    references: tuple[Reference, ...] = ()
    missing_labels: tuple[Key, ...] = ()


class InventoryEntry(NamedTuple):
    """
    The resource that a stack owns, or uses, for an object.

    Attributes:
        key: Key of the object.
        resource_id: Id of the resource; empty while a plan still creates it.
        origin: How it came to the stack.
        associations: Labels of the object, sorted.
        is_pending_delete: Whether the object left the package, or the resource was replaced, and the resource could not
            be deleted yet.
        policy: What held of the object with the last apply that wrote the entry, as ``services.kinds.policy`` writes
            it; empty: the defaults.
    """

    key: Key
    resource_id: str
    origin: Origin
    associations: tuple[Key, ...] = ()
    is_pending_delete: bool = False
    policy: str = ""

    @property
    def object_key(self) -> Key:
        """The key of its object, also where another resource has that key since its own one was replaced."""
        before = self.key.name.removesuffix(_beside(self.resource_id))
        return self.key._replace(name=before) if self.is_pending_delete and before else self.key

    def beside(self, resource_id: str) -> "InventoryEntry":
        """The entry of a resource that was replaced and is still to be deleted, where another one has the key."""
        key = self.key._replace(name=self.key.name + _beside(resource_id))
        return self._replace(key=key, resource_id=resource_id, associations=(), is_pending_delete=True)


def _beside(resource_id: str) -> str:
    return f"~{resource_id}"


@dataclass(frozen=True, slots=True)
class StackRecord:
    """
    What the planner and the applier need to know of a stack.

    Attributes:
        id: Its id; empty for one that is still to be created, and for none.
        target: Where its resources live.
        name: Its name; may be empty.
        generation: Counts what changed in it.
        resources: What it owns and uses, sorted by key.
        sources: Names of the sources of the last apply that changed anything.
        revision: Number of its current revision; 0: it has none.
        package_digest: Digest of the package of that revision; empty: it has none.
        without_baseline: Keys of those of *resources* that have no baseline.
        policy: Its policy, as ``services.kinds.policy`` accepts it.
        urls: Addresses that are part of each apply, behind the sources that this names.
        is_new_nameless: Whether it is a stack without a name that is still to be created.
    """

    id: str
    target: Target
    name: str
    generation: int
    resources: tuple[InventoryEntry, ...] = ()
    sources: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    revision: int = 0
    package_digest: str = ""
    without_baseline: frozenset[Key] = frozenset()
    policy: Mapping[str, Any] = field(default_factory=dict)
    is_new_nameless: bool = False

    @property
    def is_kept(self) -> bool:
        """Whether there is a record, or one to be; not so for a plan on behalf of no stack."""
        return bool(self.id or self.name or self.is_new_nameless)


class OperationKind(StrEnum):
    """What a plan, and the operation that runs it, are for; as in plan.proto."""

    APPLY = "APPLY"
    UNINSTALL = "UNINSTALL"
    ROLLBACK = "ROLLBACK"


class AfterUninstall(StrEnum):
    """What becomes of a stack after an uninstall; as in plan.proto."""

    KEEP = "KEEP"
    DELETE = "DELETE"


class Verb(Enum):
    """What a step does."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    ATTACH = "attach"
    DETACH = "detach"


class Undo(Enum):
    """How a step is taken back (docs/reference/engine.md, "Steps and stages")."""

    EXACT = "exact"
    RECREATE = "recreate"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class StepReference:
    """
    A reference of the resource of a step.

    Attributes:
        pointer: RFC 6901 pointer into the spec.
        key: The object whose resource is referred to; with an empty name for a resource that no object names.
        id: The id of that resource; empty while the plan still creates it.
    """

    pointer: str
    key: Key
    id: str = ""


class Step(NamedTuple):
    """
    One effect, with all that is needed to do it and to take it back; empty ids are found by key at run time.

    References are sorted by pointer: the old ones of what a step updates or deletes, those that one creates or updates
    is to leave.
    """

    number: int
    stage: int
    verb: Verb
    key: Key
    resource_id: str = ""
    label: Key | None = None
    label_id: str = ""
    old_spec: Spec | None = None
    new_spec: Spec | None = None
    undo: Undo = Undo.EXACT
    reason: str = ""
    old_references: tuple[StepReference, ...] = ()
    references: tuple[StepReference, ...] = ()


class DiffStatus(Enum):
    """State of a diff entry (docs/reference/package-format.md, "Diff")."""

    NEW = "new"
    EXISTS = "exists"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One difference of two specs or references: an RFC 6901 pointer and JSON texts, empty where nothing is."""

    path: str
    old: str
    new: str


class ResourceDiff(NamedTuple):
    """
    What the package wants of one object beside what the platform holds.

    ``old_kind`` is the kind of the resource where that is another one of the family, else empty; ``location`` is where
    the object stands in its source, None for one that left the package, whose resource refers to ``old_references``.
    """

    key: Key
    resource_id: str
    status: DiffStatus
    old_spec: Spec | None
    new_spec: Spec | None
    changes: tuple[FieldChange, ...] = ()
    old_kind: str = ""
    location: Location | None = None
    old_references: tuple[StepReference, ...] = ()


class LabelMappingDiff(NamedTuple):
    """What happens to one association."""

    status: DiffStatus
    resource: Key
    resource_id: str
    label: Key
    label_id: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A resource that no stack owns and that a plan changes or replaces; ``message`` is one sentence about it."""

    key: Key
    resource_id: str
    message: str


class Organization(NamedTuple):
    """
    A part of a platform with resources of its own.

    Attributes:
        id: What targets name.
        name: Name for people.
        native_id: Id by which the platform's own clients know it; empty: the same.
    """

    id: str
    name: str
    native_id: str = ""


class Adoption(NamedTuple):
    """
    A resource that a plan found by its name, and that no stack owned.

    Attributes:
        key: The object that it is for.
        kind: Kind of the resource; another one than that of the object where it is replaced.
        resource_id: Its id.
        display_name: Its name.
    """

    key: Key
    kind: str
    resource_id: str
    display_name: str


class Use(NamedTuple):
    """
    A resource that another stack has, too, or a label on a resource.

    Attributes:
        key: The object that it is for.
        kind: Kind of the resource.
        resource_id: Its id.
        label_id: Id of the label on it; empty for the resource itself.
    """

    key: Key
    kind: str
    resource_id: str
    label_id: str = ""


@dataclass(frozen=True, slots=True)
class RecordChanges:
    """
    What a plan changes in the record of its stack, once all steps are done.

    Attributes:
        entries: Entries that are new or different, sorted by key.
        removed: Keys that leave, sorted.
        staying: Those of *removed* whose resource stays on the platform, as other stacks use it or own it, sorted.
        staying_labels: Labels that leave the record and stay attached, as the records of other stacks want them,
            sorted.
    """

    entries: tuple[InventoryEntry, ...] = ()
    removed: tuple[Key, ...] = ()
    staying: tuple[Key, ...] = ()
    staying_labels: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanRemarks:
    """What there is to say about a plan beside its steps; plan.proto says what each list means."""

    missing_env_refs: tuple[str, ...] = ()
    unresolved_env_refs: tuple[str, ...] = ()
    missing_secrets: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """
    Everything an apply needs, and nothing it has to look up again; ``steps`` are sorted by stage.

    A plan for a stack that is still to be created has its name and no id, or ``creates_nameless_stack``; one that
    leaves no record has none of them. What
    travels beside it is named by digest: the package that its revision keeps, and baselines of what it does not write.
    ``untouched_count`` is the number of recorded resources that it leaves alone without comparing them.
    """

    target: Target
    stack_id: str
    base_generation: int
    stages: tuple[str, ...]
    steps: tuple[Step, ...]
    record: RecordChanges
    no_change: bool
    kind: OperationKind = OperationKind.APPLY
    remarks: PlanRemarks = PlanRemarks()
    sources: tuple[str, ...] = ()
    digest: str = ""
    stack_name: str = ""
    adoptions: tuple[Adoption, ...] = ()
    uses: tuple[Use, ...] = ()
    package_digest: str = ""
    baselines_digest: str = ""
    rollback_of: int = 0
    then: AfterUninstall = AfterUninstall.KEEP
    key_changes: tuple[tuple[Key, Key], ...] = ()
    untouched_count: int = 0
    creates_nameless_stack: bool = False


@dataclass(frozen=True, slots=True)
class PlanDiffs:
    """The differences that a plan is made of: for each object, and for each association, sorted by key."""

    resources: tuple[ResourceDiff, ...] = ()
    label_mappings: tuple[LabelMappingDiff, ...] = ()


class Precondition(Enum):
    """Whether anybody can write between what is expected and what is written; driver.proto says what each means."""

    ATOMIC = "atomic"
    READ_FIRST = "read_first"


class NameUniqueness(Enum):
    """What a platform demands of the display names of one kind; driver.proto has the rule of each value."""

    NONE = "none"
    EXACT = "exact"
    CASE_INSENSITIVE = "case_insensitive"
    TRIMMED_CASE_INSENSITIVE = "trimmed_case_insensitive"


_SPACES = (*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
_WHITE_SPACE = "".join(map(chr, _SPACES))
"""The characters with the Unicode property White_Space; ``str.strip`` by itself would strip U+001C to U+001F too."""


def _lower(name: str) -> str:
    """*name* in lower case, letter by letter: ``ß`` stays one letter, and none depends on the one behind it."""
    return name.lower() if name.isascii() else "".join(letter.lower()[0] for letter in name)


class Identity(Enum):
    """How an uncertain create is resolved (docs/reference/engine.md, "Recovery")."""

    NATIVE = "native"
    NATURAL_KEY = "natural_key"
    SEARCH = "search"


@dataclass(frozen=True, slots=True)
class KindTraits:
    """
    What the engine must know of one kind on one platform.

    Attributes:
        kind: The kind.
        identity: How an uncertain create is resolved.
        name_uniqueness: What the platform demands of names; the same for all kinds of one scope.
        stage: Lower ones are created first and removed last.
        delete_undo: How a deletion is taken back.
        immutable_paths: Pointers to what cannot change; a change is a replacement.
        set_paths: Pointers to lists whose order has no meaning.
        labelled: Whether labels can be attached.
        name_scope: Kinds that share their unique names have the same; empty: a scope of its own.
        sensitive_paths: Pointers to credentials, where no text is accepted but only the name of a secret.
        costly_listing: Whether known resources are read rather than all listed; only where names may repeat.
    """

    kind: str
    identity: Identity
    name_uniqueness: NameUniqueness
    stage: int
    delete_undo: Undo
    immutable_paths: tuple[str, ...] = ()
    set_paths: tuple[str, ...] = ()
    labelled: bool = True
    name_scope: str = ""
    sensitive_paths: tuple[str, ...] = ()
    costly_listing: bool = False

    @property
    def scope(self) -> str:
        """What unique names are unique in."""
        return self.name_scope or self.kind

    def unique_name(self, display_name: str) -> str | None:
        """The form in which the platform compares *display_name*; None when names of the kind may repeat."""
        return None if self.name_uniqueness is NameUniqueness.NONE else self.compared_name(display_name)

    def compared_name(self, display_name: str) -> str:
        """The form in which *display_name* equals another; names of a kind that may repeat are compared exactly."""
        match self.name_uniqueness:
            case NameUniqueness.NONE | NameUniqueness.EXACT:
                return display_name
            case NameUniqueness.CASE_INSENSITIVE:
                return _lower(display_name)
            case NameUniqueness.TRIMMED_CASE_INSENSITIVE:
                return _lower(display_name.strip(_WHITE_SPACE))

    def written_secrets(self, spec: Spec) -> list[str]:
        """The sensitive paths at which *spec* has something else than nothing or the name of a secret."""
        return [path for path in self.sensitive_paths if spec.at(path) and not _secret_key(spec.at(path))]

    def secret_keys(self, spec: Spec) -> set[str]:
        """Keys of the secrets that *spec* names at the sensitive paths."""
        return {key for path in self.sensitive_paths if (key := _secret_key(spec.at(path)))}


def _secret_key(value: Any) -> str:
    """The key of the secret that *value* names; empty when it names none."""
    match value:
        case {"secretRef": {"key": str(key), **more}, **others} if not more and not others:
            return key
        case _:
            return ""


@dataclass(frozen=True, slots=True)
class PlatformTraits:
    """
    What a driver says of its platform.

    Attributes:
        platform: What kind of platform it is.
        version: Its version.
        kinds: What the engine must know of each kind, by kind.
        max_batch_size: Most mutations in one batch.
        max_concurrency: Most batches at the same time.
        fences: Whether it refuses fencing tokens older than the newest it has seen.
        holds_secrets: Whether it holds secrets.
        precondition: How it holds a resource to what is expected.
    """

    platform: str
    version: str
    kinds: Mapping[str, KindTraits]
    max_batch_size: int
    max_concurrency: int
    fences: bool = False
    holds_secrets: bool = False
    precondition: Precondition = Precondition.READ_FIRST

    def compared(self, kind: str, spec: Spec) -> tuple[str, str]:
        """The kind of a resource, and its display name in the form in which the platform compares it."""
        return kind, self.kinds[kind].compared_name(spec.display_name)


@dataclass(frozen=True, slots=True)
class Desired:
    """
    What a plan is to reach.

    Attributes:
        package: What is wanted; empty to remove everything.
        skip: Keys to leave out; an empty name stands for all of the kind.
        is_end: Whether the stack is uninstalled: what it adopted then stays on the platform (docs/reference/engine.md,
            "Policies", on_delete).
        then: What becomes of the stack when it is uninstalled.
        secret_keys: Keys of the secrets that are given with the apply.
        allow_replace: Whether what no stack owns may be deleted, to be created anew.
        allow_empty: Whether a package without objects may take all from a stack.
        rollback_of: The revision that the package is of; 0: of none.
        is_for_nameless: Whether nobody named the stack: then nothing leaves it, and what other stacks own is refused.
    """

    package: Package
    skip: frozenset[Key] = field(default_factory=frozenset)
    is_end: bool = False
    secret_keys: frozenset[str] = field(default_factory=frozenset)
    allow_replace: bool = False
    allow_empty: bool = False
    rollback_of: int = 0
    then: AfterUninstall = AfterUninstall.KEEP
    is_for_nameless: bool = False

    @property
    def operation_kind(self) -> OperationKind:
        """What the operation is for that reaches it."""
        if self.is_end:
            return OperationKind.UNINSTALL
        return OperationKind.ROLLBACK if self.rollback_of else OperationKind.APPLY

    @property
    def deletes_stack(self) -> bool:
        """Whether the stack goes away with what it owns."""
        return self.is_end and self.then is AfterUninstall.DELETE

    def skips(self, key: Key) -> bool:
        """Whether *key* is neither applied nor removed."""
        return bool(self.skip) and (key in self.skip or Key(key.kind, "") in self.skip)

    def skips_entry(self, entry: InventoryEntry) -> bool:
        """Whether what is recorded as *entry* stays as it is, also a resource that waits to be deleted."""
        return bool(self.skip) and (self.skips(entry.key) or self.skips(entry.object_key))


def by_key(entries: Sequence[InventoryEntry]) -> dict[Key, InventoryEntry]:
    """The entries of an inventory by their key."""
    return {entry.key: entry for entry in entries}
