"""
The domain values of pkger (docs/glossary.md), all of them immutable.

A type of which a large plan has tens of thousands of values is a named tuple: creating one is several times as fast as
creating a dataclass.
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
"""How deep lists and objects of a spec may be nested: canonical text cannot be written for deeper ones."""


class UnreadableSpecError(ValueError):
    """A driver returned a spec that is not valid; the message says why."""


class Spec:
    """
    Normalised content as canonical JSON text, with the display name beside it.

    Two specs are equal when their texts are equal: unlike Python's equality, this distinguishes ``true`` from ``1`` and
    ``1`` from ``1.0``. The text is parsed at the first access to ``value``. Specs are created by
    ``services.kinds.format.canonical``, the only module that writes canonical text, and from messages that carry such
    text.

    Attributes:
        text: The canonical text.
        display_name: The name of the resource on the platform.
    """

    __slots__ = ("_value", "display_name", "text")

    def __init__(self, text: str, display_name: str, value: Mapping[str, Any] | None = None) -> None:
        """*value* is the parsed *text*; None: it is parsed when it is needed."""
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
        The content, not to be modified.

        Raises:
            UnreadableSpecError: The text, which a driver returned, is not a JSON object.
        """
        if self._value is None:
            self._value = read_object(self.text)
        return self._value

    def at(self, pointer: str) -> Any:
        """The value at *pointer*, which may pass through objects only; None if there is none."""
        value: Any = self.value
        for key in pointer.split("/")[1:]:
            value = value.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(value, Mapping) else None
        return value


class ResettingSpec(Spec):
    """
    A prepared spec whose write also changes what specs do not have.

    Attributes:
        resets: What it changes, each for people.
    """

    __slots__ = ("resets",)

    def __init__(self, spec: Spec, resets: Sequence[str]) -> None:
        """The content is that of *spec*."""
        super().__init__(spec.text, spec.display_name, spec._value)
        self.resets = tuple(resets)


def read_object(text: str) -> Mapping[str, Any]:
    """
    Read a spec.

    Raises:
        UnreadableSpecError: *text* is not a JSON object.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:
            # A lone surrogate cannot be encoded as UTF-8.
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
    """How deep lists and objects are nested in *value*."""
    depth, level = 0, [value]
    while level:
        depth += 1
        items = (item for each in level for item in (each.values() if isinstance(each, dict) else each))
        level = [item for item in items if isinstance(item, dict | list)]
    return depth


@dataclass(frozen=True, slots=True)
class EnvReference:
    """
    A field whose value the caller supplies by key; ``None`` is JSON null.

    ``value_type`` is the type of a query parameter (docs/reference/package-format.md, "Parameter types"), else empty.
    """

    resource_field: str
    env_key: str
    value: Any
    default: Any
    value_type: str = ""


@dataclass(frozen=True, slots=True)
class WrittenValue:
    """
    A field whose value in the source differs from the spec: a reference, or a query with parameters.

    Attributes:
        pointer: RFC 6901 pointer into the object as written in the source.
        text: The value in the source, as canonical JSON.
    """

    pointer: str
    text: str


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source; line and column start at 1, and 0 means unknown."""

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
        env_references: Its references to environment values.
        written: The fields whose value in the source differs from the spec, sorted by pointer.
        location: Its first character in its source; None if unknown. It is not part of the content.
        lifecycle: The policy in its ``metadata.lifecycle``, as canonical JSON; empty: it has none.
    """

    key: Key
    api_version: str
    spec: Spec
    associations: tuple[Key, ...] = ()
    env_references: tuple[EnvReference, ...] = ()
    written: tuple[WrittenValue, ...] = ()
    location: Location | None = None
    lifecycle: str = ""


@dataclass(frozen=True, slots=True)
class Package:
    """
    Objects with unique keys, in the order of their sources.

    Attributes:
        objects: The objects.
        sources: The names of their sources.
        lifecycles: ``Lifecycle`` documents as canonical JSON, by the installed packages that have them; the document of
            a package that is not installed has an empty name.
    """

    objects: tuple[Object, ...]
    sources: tuple[str, ...] = ()
    lifecycles: Mapping[str, str] = field(default_factory=dict)


class Severity(Enum):
    """Severity of a violation."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"


class Position(NamedTuple):
    """A line and a column of a source, both starting at 1; 0 means unknown."""

    line: int = 0
    column: int = 0


UNKNOWN_POSITION = Position()


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a violation concerns; ``text`` is one sentence about it."""

    location: Location
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the characters from ``location`` up to, but not including, ``end`` with ``text``."""

    location: Location
    end: Position
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One way to correct a violation; ``is_preferred``: it most likely restores the intended meaning."""

    title: str
    edits: tuple[Edit, ...]
    is_preferred: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """
    One rule of the package format that an object breaks, or a probable mistake.

    Attributes:
        kind: Kind of the object.
        path: The field, as docs/reference/package-format.md, "Violations" writes it.
        reason: One sentence: what is wrong, and what to write instead.
        location: The first marked character.
        code: The rule; a code of ``services.kinds.diagnostics``.
        severity: Its severity.
        end: The position after the last marked character; the mark never extends beyond its first line.
        related: Other places that it concerns.
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
    A field that holds a credential, or takes it from an environment value, instead of referring to a secret.

    Attributes:
        key: The object.
        pointer: RFC 6901 pointer into its spec.
        location: The place of the field in the source.
    """

    key: Key
    pointer: str
    location: Location


class PackageReference(NamedTuple):
    """
    A field that names an object of another package, as ``PACKAGE.NAME``.

    Attributes:
        key: The object that has the field.
        path: The field, as docs/reference/package-format.md, "Violations" writes it.
        package: The name of the other package, a direct requirement.
        name: The ``metadata.name`` of its object.
        location: The first character of the name in its source.
        end: The position after the last one.
    """

    key: Key
    path: str
    package: str
    name: str
    location: Location
    end: Position = UNKNOWN_POSITION


@dataclass(frozen=True, slots=True)
class Reference:
    """A field of a spec, by RFC 6901 pointer, that refers to another resource, by kind and id."""

    pointer: str
    kind: str
    id: str


ResourceKey = tuple[str, str]
"""Kind and id of a resource."""


class Resource(NamedTuple):
    """
    A resource of a platform.

    ``label_ids`` are sorted, ``references`` by pointer, and only to existing resources; ``unexpressed`` names what the
    platform holds beyond the spec.
    """

    kind: str
    id: str
    spec: Spec
    label_ids: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    unexpressed: tuple[str, ...] = ()


class DesiredSpec(NamedTuple):
    """
    A spec to write.

    Attributes:
        kind: Its kind.
        resource_id: The resource to write it to; empty for a resource that is not created yet.
        spec: The spec.
        references: Its references; the id of a resource that is not created yet is empty.
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
    The state of a resource right after its stack wrote it, adopted it or imported it.

    Attributes:
        key: Key of its entry.
        spec: The spec as canonical JSON text; empty if only labels were written and the spec is unchanged.
        references: Its references, sorted by pointer.
        missing_labels: The labels of its object that an operator decided not to attach, sorted; all other labels of the
            entry were attached.
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
        resource_id: Id of the resource; empty until it is created.
        origin: How it came to the stack.
        associations: Labels of the object, sorted.
        is_pending_delete: Whether the object left the package, or the resource was replaced, and the deletion of the
            resource has not succeeded yet.
        policy: The policy of the object at the last apply that wrote the entry, as ``services.kinds.policy`` writes it;
            empty: the defaults.
        own_policy: What package and object themselves said then, as ``services.kinds.policy`` writes it; empty:
            nothing.
    """

    key: Key
    resource_id: str
    origin: Origin
    associations: tuple[Key, ...] = ()
    is_pending_delete: bool = False
    policy: str = ""
    own_policy: str = ""

    @property
    def object_key(self) -> Key:
        """The key of its object, even if its resource was replaced and the new resource has that key."""
        before = self.key.name.removesuffix(_beside(self.resource_id))
        return self.key._replace(name=before) if self.is_pending_delete and before else self.key

    def beside(self, resource_id: str) -> "InventoryEntry":
        """The entry of a replaced resource that is not deleted yet, beside the entry of the new resource."""
        key = self.key._replace(name=self.key.name + _beside(resource_id))
        return self._replace(key=key, resource_id=resource_id, associations=(), is_pending_delete=True)


def _beside(resource_id: str) -> str:
    return f"~{resource_id}"


@dataclass(frozen=True, slots=True)
class StackRecord:
    """
    The part of a stack that planner and applier need.

    Attributes:
        id: Its id; empty if the stack is not created yet, or if the plan is for no stack.
        target: Where its resources live.
        name: Its name; may be empty.
        generation: Number of changes of its record.
        resources: The entries of what it owns and uses, sorted by key.
        sources: Names of the sources of the last apply that changed anything.
        revision: Number of its current revision; 0: it has none.
        package_digest: Digest of the package of that revision; empty: it has none.
        without_baseline: Keys of the entries in *resources* that have no baseline.
        policy: Its policy, as ``services.kinds.policy`` accepts it.
        urls: Addresses that are sources of each apply, after the sources of the request.
        is_new_nameless: Whether it is a stack without a name that is not created yet.
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
        """Whether the stack has a record, or will have one; false for a plan for no stack."""
        return bool(self.id or self.name or self.is_new_nameless)


class OperationKind(StrEnum):
    """The purpose of a plan and of the operation that runs it; as in plan.proto."""

    APPLY = "APPLY"
    UNINSTALL = "UNINSTALL"
    ROLLBACK = "ROLLBACK"
    ACTION = "ACTION"


class AfterUninstall(StrEnum):
    """Whether a stack is kept or deleted after an uninstall; as in plan.proto."""

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
    """How a step is undone (docs/reference/engine.md, "Steps and stages")."""

    EXACT = "exact"
    RECREATE = "recreate"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class StepReference:
    """
    A reference of the resource of a step.

    Attributes:
        pointer: RFC 6901 pointer into the spec.
        key: The object whose resource is referred to; its name is empty if no object stands for the resource.
        id: The id of that resource; empty until it is created.
    """

    pointer: str
    key: Key
    id: str = ""


class DataLoss(NamedTuple):
    """
    Data that an update deletes for ever.

    Attributes:
        path: RFC 6901 pointer to the field whose change deletes it.
        data: The deleted data, in words that follow ``loses``: ``data older than 1h``.
    """

    path: str
    data: str


class Step(NamedTuple):
    """
    One effect, with everything needed to perform and to undo it; an empty id is resolved by key at run time.

    References are sorted by pointer. ``old_references`` are those before an update or a deletion, ``references`` those
    after a creation or an update. ``loss`` is the data that an update deletes.
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
    loss: DataLoss | None = None


class DiffStatus(Enum):
    """State of a diff entry (docs/reference/package-format.md, "Diff")."""

    NEW = "new"
    EXISTS = "exists"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One difference of two specs or references: an RFC 6901 pointer and two JSON texts; empty: there is no value."""

    path: str
    old: str
    new: str


class ResourceDiff(NamedTuple):
    """
    The desired state of one object beside its live state.

    ``old_kind`` is the kind of the resource if it is another kind of the family, else empty. ``location`` is the place
    of the object in its source; None if the object left the package. ``old_references`` are the references of the
    resource of such an object. ``create_step`` is the number of the step that creates the resource; None if none does.
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
    create_step: int | None = None


class LabelMappingDiff(NamedTuple):
    """The change of one association."""

    status: DiffStatus
    resource: Key
    resource_id: str
    label: Key
    label_id: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """An unowned resource that a plan changes or replaces; ``message`` is one sentence about it."""

    key: Key
    resource_id: str
    message: str


class Organization(NamedTuple):
    """
    A tenant of a platform.

    Attributes:
        id: The id that targets contain.
        name: Its display name.
        native_id: Its id for the platform's own clients; empty: the same.
    """

    id: str
    name: str
    native_id: str = ""


class Adoption(NamedTuple):
    """
    An unowned resource that a plan found by its name.

    Attributes:
        key: The object that it is for.
        kind: Kind of the resource; if it is replaced, it may differ from the kind of the object.
        resource_id: Its id.
        display_name: Its name.
    """

    key: Key
    kind: str
    resource_id: str
    display_name: str


class Use(NamedTuple):
    """
    A resource, or a label on a resource, that another stack has as well.

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
    The changes of the record of a stack after all steps of a plan are done.

    Attributes:
        entries: New and changed entries, sorted by key.
        removed: Keys of removed entries, sorted.
        staying: The keys in *removed* whose resource stays on the platform because other stacks use or own it, sorted.
        staying_labels: Labels that leave the record and stay attached because records of other stacks contain them,
            sorted.
        taken_over: The keys in *entries* whose resource another stack without a name owns and hands over when the
            operation ends, sorted.
    """

    entries: tuple[InventoryEntry, ...] = ()
    removed: tuple[Key, ...] = ()
    staying: tuple[Key, ...] = ()
    staying_labels: tuple[Use, ...] = ()
    taken_over: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanRemarks:
    """The remarks of a plan; plan.proto defines each list."""

    missing_env_refs: tuple[str, ...] = ()
    unresolved_env_refs: tuple[str, ...] = ()
    missing_secrets: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    package_warnings: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """
    Everything that an apply needs; ``steps`` are sorted by stage.

    A plan that creates its stack has the name of the stack and no id, or ``creates_nameless_stack``. A plan for no
    stack has none of the three. Attachments are stored apart and named by digest: the package of its revision, and the
    baselines of resources that it does not write. ``untouched_count`` is the number of resources that it does not
    bring to the declared state. ``max_deletes`` is the limit of the policy for deletions and updates that lose data;
    None: there is none. ``duplicate_count`` is the number of objects that it creates beside a resource of their name.
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
    after_uninstall: AfterUninstall = AfterUninstall.KEEP
    key_changes: tuple[tuple[Key, Key], ...] = ()
    untouched_count: int = 0
    creates_nameless_stack: bool = False
    max_deletes: int | None = None
    duplicate_count: int = 0


@dataclass(frozen=True, slots=True)
class PlanDiffs:
    """The differences from which a plan is made: per object and per association, sorted by key."""

    resources: tuple[ResourceDiff, ...] = ()
    label_mappings: tuple[LabelMappingDiff, ...] = ()


class Precondition(Enum):
    """Whether another writer can come between the check of an expectation and the write; see driver.proto."""

    ATOMIC = "atomic"
    READ_FIRST = "read_first"


class NameUniqueness(Enum):
    """The uniqueness rule for display names of one kind; driver.proto defines each value."""

    NONE = "none"
    EXACT = "exact"
    CASE_INSENSITIVE = "case_insensitive"
    TRIMMED_CASE_INSENSITIVE = "trimmed_case_insensitive"


_SPACES = (*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
_WHITE_SPACE = "".join(map(chr, _SPACES))
"""The characters with the Unicode property White_Space; ``str.strip`` by itself would strip U+001C to U+001F too."""


def _lower(name: str) -> str:
    """*name* in lower case, letter by letter: each letter maps to one letter, independently of its neighbours."""
    return name.lower() if name.isascii() else "".join(letter.lower()[0] for letter in name)


class Identity(Enum):
    """How the engine finds the resource of a creation with unknown outcome (docs/reference/engine.md, "Recovery")."""

    NATIVE = "native"
    NATURAL_KEY = "natural_key"
    SEARCH = "search"


@dataclass(frozen=True, slots=True)
class KindTraits:
    """
    What the engine has to know about one kind on one platform.

    Attributes:
        kind: The kind.
        identity: How the resource of a creation with unknown outcome is found.
        name_uniqueness: The rule for display names; the same for all kinds of one scope.
        stage: Kinds with lower stages are created first and deleted last.
        delete_undo: How a deletion is undone.
        immutable_paths: Pointers to fields that cannot change: a change there replaces the resource.
        set_paths: Pointers to lists whose order has no meaning.
        labelled: Whether labels can be attached.
        name_scope: The scope in which names are unique; empty: the kind is its own scope.
        sensitive_paths: Pointers to credentials; only references to secrets are accepted there.
        costly_listing: Whether the planner reads recorded resources by id instead of listing all; only for kinds whose
            names may repeat.
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
        """The scope in which names are unique."""
        return self.name_scope or self.kind

    @property
    def names_may_repeat(self) -> bool:
        """Whether several resources may have one display name, so that it does not identify a resource."""
        return self.name_uniqueness is NameUniqueness.NONE

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
        """The sensitive paths at which *spec* has a value that is not a reference to a secret."""
        return [path for path in self.sensitive_paths if spec.at(path) and not _secret_key(spec.at(path))]

    def secret_keys(self, spec: Spec) -> set[str]:
        """Keys of the secrets that *spec* refers to at the sensitive paths."""
        return {key for path in self.sensitive_paths if (key := _secret_key(spec.at(path)))}


def _secret_key(value: Any) -> str:
    """The key of the secret that *value* refers to; empty if it is not such a reference."""
    match value:
        case {"secretRef": {"key": str(key), **more}, **others} if not more and not others:
            return key
        case _:
            return ""


@dataclass(frozen=True, slots=True)
class PlatformTraits:
    """
    What a driver declares about its platform.

    Attributes:
        platform: The type of platform.
        version: Its version.
        kinds: The traits of each kind, by kind.
        max_batch_size: Most mutations in one batch.
        max_concurrency: Most batches at the same time.
        fences: Whether it refuses fencing tokens lower than the highest that it has seen.
        holds_secrets: Whether it stores secrets.
        precondition: How it checks expectations.
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
        """The kind of a resource, and its display name in the form that the platform compares."""
        return kind, self.kinds[kind].compared_name(spec.display_name)


def by_key(entries: Sequence[InventoryEntry]) -> dict[Key, InventoryEntry]:
    """The entries of an inventory by their key."""
    return {entry.key: entry for entry in entries}
