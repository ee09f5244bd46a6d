"""What all effects have in common: how a step is taken back, what it needs, what can be found out about it."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from services.core.model import KindTraits, PlatformTraits, Reference, Resource, ResourceKey, Spec, Step, Undo, Verb
from services.engine.claims import Claimed, ClaimedResource, ClaimMode
from services.engine.expectation import Expectation
from services.engine.ids import Ids
from services.engine.outcome import Done, Finding, Outcome


@dataclass(frozen=True, slots=True)
class Sending:
    """
    What is sent for a step, and where, as far as that is found only at run time.

    Attributes:
        resource_id: The resource it was sent to; empty for a creation.
        label_id: The label that it attaches or detaches; empty for all else.
        references: What the resource refers to, if it happened.
        old_references: What the resource refers to, if it did not.
        before_ids: Of a creation: resources of its kind and display name that were there before it was sent.
        expected: What it may write over or delete; None: whatever is there.
    """

    resource_id: str = ""
    label_id: str = ""
    references: tuple[Reference, ...] = ()
    old_references: tuple[Reference, ...] = ()
    before_ids: Collection[str] = ()
    expected: Expectation | None = None


class Scene(Protocol):
    """A platform as the steps of a plan leave it one after another, and what on it is not as they expect."""

    ids: Ids

    def holds(self, resource: ResourceKey, step: Step) -> bool:
        """Whether *resource*, which *step* is about, is there; tells it when it is gone."""

    def compare(self, resource: ResourceKey, step: Step) -> None:
        """Tell what of *resource* is not as *step* was planned for."""

    def write(self, resource: ResourceKey, step: Step) -> None:
        """Let *resource* be what *step* makes of it; tells what is in the way."""

    def remove(self, resource: ResourceKey, step: Step) -> None:
        """Let *resource* be gone; tells what hangs on it."""

    def link(self, resource: ResourceKey, step: Step, attached: bool) -> None:
        """Let the label of *step* be *attached* to *resource*, or not; tells when it is so already."""


@dataclass(frozen=True, slots=True)
class Effect(ABC):
    """
    What one step does to a platform.

    Attributes:
        step: The step: one of a plan, or the inverse of one.
    """

    step: Step
    makes: ClassVar[bool] = False
    """Whether it brings a resource into being, whose id only the platform knows."""
    removes: ClassVar[bool] = False
    """Whether it takes something away; what is gone already needs no sending."""
    links: ClassVar[bool] = False
    """Whether it is about a label on a resource, and not about the content of one."""
    expects: ClassVar[bool] = False
    """Whether it writes over, or deletes, what is there."""
    is_of_secret: ClassVar[bool] = False
    """Whether it is about a secret: no stack owns one, nobody can read it, and its value is nowhere but in memory."""

    claim_mode: ClassVar[ClaimMode] = ClaimMode.ALONE
    """How it needs what it claims."""

    @property
    def number(self) -> int:
        """Its position in the plan."""
        return self.step.number

    @property
    def shown(self) -> str:
        """What it does, for people."""
        return f"{self.step.verb.value} {self.step.key}"

    @property
    def seals(self) -> bool:
        """Whether nothing is taken back once it may have been sent (engine.md 3)."""
        return self.step.undo is Undo.NONE

    @abstractmethod
    def inverse(self) -> Step:
        """
        The step that takes it back, from its full pre-image.

        It keeps the number, and leaves the ids to be found by key: what was created, or deleted and created again, has
        another id than the plan knew.
        """

    def is_to_be_undone(self, outcome: Outcome) -> bool:
        """Whether the undo of an operation has to take it back, after it ended with *outcome*."""
        return isinstance(outcome, Done) and self.step.undo is not Undo.NONE

    def target(self, ids: Ids) -> str:
        """Id of the resource it is about; empty for a creation and while that does not exist."""
        return ids.find(self.step.key, self.step.resource_id)

    def label_id(self, ids: Ids) -> str:
        """Id of the label it attaches or detaches; empty when it does not exist, or there is none."""
        return ids.find(self.step.label, self.step.label_id)

    def is_possible(self, ids: Ids) -> bool:
        """Whether all that it needs exists."""
        return bool(self.target(ids)) and all(each.id for each in ids.references(self.step.references))

    def sending(self, ids: Ids, before_ids: Collection[str] = ()) -> Sending:
        """What is sent for it now."""
        return Sending(
            self.target(ids),
            self.label_id(ids),
            ids.references(self.step.references),
            ids.references(self.step.old_references),
            before_ids,
        )

    def learn(self, ids: Ids, resource_id: str) -> None:  # noqa: B027 - most change no id
        """Tell *ids* that it took effect on the resource *resource_id*."""

    def is_resolved_by_retry(self, platform: PlatformTraits) -> bool:
        """Whether sending it again is the way to find out what became of it (engine.md 5)."""
        return False

    def is_repeatable(self, platform: PlatformTraits) -> bool:
        """Whether sending it twice has its effect once."""
        return True

    def is_searched_for(self, platform: PlatformTraits) -> bool:
        """Whether it is a creation that, without an answer, has to be searched for among others of its name."""
        return False

    def claims(self, ids: Ids, platform: PlatformTraits) -> Sequence[Claimed]:
        """What only one operation at a time may be at work on, when this is sent (engine.md 11.1)."""
        return [ClaimedResource(self.step.key.kind, self.target(ids))]

    def awaits_claims(self, platform: PlatformTraits) -> bool:
        """Whether it waits for what another operation claims, as that is over soon; else it fails."""
        return False

    @abstractmethod
    def finding(self, sending: Sending, live: Resource | None, traits: KindTraits) -> Finding:
        """
        What became of it, by what is on the platform now (engine.md 5).

        Args:
            sending: What was sent.
            live: The resource it was sent to; None when that certainly does not exist.
            traits: Of its kind.
        """

    @abstractmethod
    def rehearse(self, scene: Scene) -> None:
        """Compare what it was planned for with what it would find, and let it have its effect."""

    def expected(self, stands: bool) -> Spec | None:
        """The content of its resource if it *stands*, or if not; None where there is none to know."""
        return self.step.new_spec if stands else self.step.old_spec

    def _turned(self, verb: Verb) -> Step:
        step = self.step
        return step._replace(
            verb=verb,
            old_spec=step.new_spec,
            new_spec=step.old_spec,
            old_references=step.references,
            references=step.old_references,
        )
