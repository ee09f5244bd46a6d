"""A platform as plain values, and a line to it that loses requests and responses."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from services.core.model import Identity, KindTraits, NameUniqueness, PlatformTraits, Reference, Resource, Spec
from services.drivers.embedded.kinds import EMBEDDED
from services.engine.effects import AnyEffect, Attach, Create, Delete, DeleteSecret, Detach, PutSecret, Update
from services.engine.effects.effect import Sending
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, Outcome, RejectionReason, Unknown

Shown = tuple[str, str, list[str], list[tuple[str, str, str]]]
"""Kind, spec, names of labels and references of a resource; names replace ids, which may change."""


class Memory(Enum):
    """
    How the outcome of a creation without a response is found on a platform (docs/reference/engine.md, "Recovery").
    """

    KEYS = "it stores idempotency keys: the creation is sent again"
    NAMES = "it ignores keys: the creation is looked up by name where names are unique, else searched for"
    SEARCHED = "as NAMES, and all creations are searched for"

    @property
    def traits(self) -> PlatformTraits:
        """
        The traits of the embedded platform with this memory, and with an immutable URL of Slack endpoints.

        Batches are small, so that a stage has several.
        """
        kinds = {kind: replace(each, identity=self._identity(each)) for kind, each in EMBEDDED.kinds.items()}
        slack = "NotificationEndpointSlack"
        kinds[slack] = replace(kinds[slack], immutable_paths=("/url",))
        return replace(EMBEDDED, kinds=kinds, max_batch_size=2)

    def _identity(self, traits: KindTraits) -> Identity:
        if self is Memory.KEYS:
            return Identity.NATIVE
        is_looked_up = self is Memory.NAMES and traits.name_uniqueness is not NameUniqueness.NONE
        return Identity.NATURAL_KEY if is_looked_up else Identity.SEARCH


@dataclass
class ModelPlatform:
    """
    The content of one organisation of a platform.

    Attributes:
        traits: Its rules.
        live: Its resources by id; no two have one id, whatever their kinds.
        secrets: The values of its secrets, which no RPC returns.
        created: Ids of created resources by idempotency key, where it stores keys.
        last_id: Number of resources that it ever created.
        operations: Number of operations that ever wrote to it.
    """

    traits: PlatformTraits
    live: dict[str, Resource] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    created: dict[str, str] = field(default_factory=dict)
    last_id: int = 0
    operations: int = 0

    def copy(self) -> "ModelPlatform":
        """An independent copy."""
        return replace(self, live=dict(self.live), secrets=dict(self.secrets), created=dict(self.created))

    def content(self) -> list[Shown]:
        """All resources, sorted."""
        return sorted(map(self.shown, self.live.values()))

    def shown(self, resource: Resource) -> Shown:
        """*resource* without its id."""
        labels = sorted(self._name(label_id) for label_id in resource.label_ids)
        references = sorted((each.pointer, each.kind, self._name(each.id)) for each in resource.references)
        return (resource.kind, resource.spec.text, labels, references)

    def carry_out(self, effect: AnyEffect, sending: Sending, key: str, value: str) -> Done | Failed:
        """
        Perform *effect*, or reject it. As driver.proto demands, all effects but creations are idempotent.

        Args:
            effect: The effect.
            sending: The mutation.
            key: The idempotency key of a creation.
            value: The value of a written secret.
        """
        kind, held = effect.step.key.kind, self.live.get(sending.resource_id)
        match effect:
            case Create(step) if step.new_spec:
                return self._create(kind, step.new_spec, sending.references, key)
            case Update(step) if step.new_spec:
                return self._write(kind, sending.resource_id, step.new_spec, sending.references)
            case Delete():
                self._delete(sending.resource_id)
            case Attach() if held is None or sending.label_id not in self.live:
                return Failed("there is no such resource, or label", RejectionReason.NOT_FOUND)
            case Attach() if held:
                self._put(held, {*held.label_ids, sending.label_id}, held.references)
            case Detach() if held:
                self._put(held, set(held.label_ids) - {sending.label_id}, held.references)
            case PutSecret():
                self.secrets[effect.step.key.name] = value
            case DeleteSecret():
                self.secrets.pop(effect.step.key.name, None)
        return Done(sending.resource_id)

    def _name(self, resource_id: str) -> str:
        return self.live[resource_id].spec.display_name

    def _create(self, kind: str, spec: Spec, references: tuple[Reference, ...], key: str) -> Done | Failed:
        if key in self.created:
            return Done(self.created[key])
        new_id = f"{self.last_id + 1:03}"
        if refusal := self._refusal(kind, new_id, spec, references):
            return refusal
        self.last_id += 1
        self.live[new_id] = Resource(kind, new_id, spec, (), references)
        if self.traits.kinds[kind].identity is Identity.NATIVE:
            self.created[key] = new_id
        return Done(new_id)

    def _write(self, kind: str, resource_id: str, spec: Spec, references: tuple[Reference, ...]) -> Done | Failed:
        held = self.live.get(resource_id)
        if held is None:
            return Failed("there is no such resource", RejectionReason.NOT_FOUND)
        if refusal := self._refusal(kind, resource_id, spec, references):
            return refusal
        self.live[resource_id] = held._replace(spec=spec, references=references)
        return Done(resource_id)

    def _delete(self, resource_id: str) -> None:
        """Delete a resource, its associations and the references to it."""
        self.live.pop(resource_id, None)
        for held in list(self.live.values()):
            labels = set(held.label_ids) - {resource_id}
            references = [each for each in held.references if each.id != resource_id]
            if (len(labels), len(references)) != (len(held.label_ids), len(held.references)):
                self._put(held, labels, references)

    def _put(self, held: Resource, label_ids: set[str], references: Iterable[Reference]) -> None:
        self.live[held.id] = held._replace(label_ids=tuple(sorted(label_ids)), references=tuple(references))

    def _refusal(self, kind: str, own_id: str, spec: Spec, references: tuple[Reference, ...]) -> Failed | None:
        """Why a resource is rejected: its name is taken, or a resource that it refers to does not exist."""
        if any(each.id not in self.live for each in references):
            return Failed("a resource that it refers to does not exist", RejectionReason.NOT_FOUND)
        traits = self.traits.kinds[kind]
        name = traits.unique_name(spec.display_name)
        for held in self.live.values():
            other = self.traits.kinds[held.kind]
            is_rival = held.id != own_id and other.scope == traits.scope
            if name is not None and is_rival and other.unique_name(held.spec.display_name) == name:
                return Failed(f"{held.kind} {held.id} has the name", RejectionReason.NAME_TAKEN)
        return None


class Fault(Enum):
    """A fault of one mutation."""

    REJECT = "the platform rejects it"
    LOSE_REQUEST = "the request is lost"
    LOSE_RESPONSE = "it takes effect, and the response is lost"
    BUSY = "the platform throttles it"


@dataclass(frozen=True)
class Script:
    """
    The faults of one operation.

    Attributes:
        faults: Numbers of mutations, counted from 0 over all appliers, each with its fault.
        lasting: Whether a step with a fault has it again at each retry.
    """

    faults: tuple[tuple[int, Fault], ...] = ()
    lasting: bool = False

    @property
    def refuses(self) -> bool:
        """Whether the platform rejects a mutation."""
        return any(fault is Fault.REJECT for _, fault in self.faults)


class Line:
    """
    The connection of one operation to its platform, in the role of a driver.

    Attributes:
        script: The faults from now on.
        count: Number of mutations that were sent.
    """

    def __init__(self, platform: ModelPlatform, script: Script) -> None:
        self.platform = platform
        self.script = script
        self.count = 0
        platform.operations += 1
        self._operation = platform.operations
        self._lasting: dict[str, Fault] = {}
        self._took_effect: set[str] = set()

    def send(self, effect: AnyEffect, sending: Sending, direction: Direction, value: str) -> Outcome:
        """Perform *effect*, unless the script has a fault for it; *value* is the one of a written secret."""
        key = f"{self._operation}/{effect.number}/{direction}"
        match self._fault(key):
            case Fault.REJECT:
                # A rejection with a reason means that the mutation never took effect (driver.proto).
                reason = None if key in self._took_effect else RejectionReason.CONTENT_REFUSED
                return Failed("a scripted rejection", reason)
            case Fault.BUSY:
                return Failed("the platform is busy", retry_after=1)
            case Fault.LOSE_REQUEST:
                return Unknown("the request was lost")
            case fault:
                answer = self.platform.carry_out(effect, sending, key, value)
                if isinstance(answer, Done):
                    self._took_effect.add(key)
                return Unknown("the answer was lost") if fault else answer

    def _fault(self, key: str) -> Fault | None:
        fault = dict(self.script.faults).get(self.count)
        self.count += 1
        if fault and self.script.lasting:
            self._lasting.setdefault(key, fault)
        return self._lasting.get(key, fault) if self.script.faults else None
