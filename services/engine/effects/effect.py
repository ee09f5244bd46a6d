"""The base of all effects: the inverse of a step, its requirements, and how its outcome is found."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from services.core.model import KindTraits, PlatformTraits, Reference, Resource, ResourceKey, Spec, Step, Undo, Verb
from services.engine.claims import Claimed, ClaimedResource, ClaimMode
from services.engine.expectation import Expectation
from services.engine.ids import ResourceIds
from services.engine.outcome import Done, Finding, Outcome


@dataclass(frozen=True, slots=True)
class Sending:
    """
    The parts of a mutation that are known only at run time.

    Attributes:
        resource_id: The resource to change; empty for a creation.
        label_id: The label to attach or detach; empty for other effects.
        references: The references of the resource if the mutation took effect.
        old_references: The references of the resource if it had no effect.
        before_ids: Of a creation: resources of its kind and display name that existed before it was sent.
        expected: The content that it may overwrite or delete; None: any content.
    """

    resource_id: str = ""
    label_id: str = ""
    references: tuple[Reference, ...] = ()
    old_references: tuple[Reference, ...] = ()
    before_ids: Collection[str] = ()
    expected: Expectation | None = None


class Scene(Protocol):
    """A model of a platform on which the steps of a plan are rehearsed; it collects what differs from the plan."""

    ids: ResourceIds

    def holds(self, resource: ResourceKey, step: Step) -> bool:
        """Whether *resource*, which *step* is about, exists; report it when it is gone."""

    def compare(self, resource: ResourceKey, step: Step) -> None:
        """Report fields of *resource* that differ from the plan of *step*."""

    def write(self, resource: ResourceKey, step: Step) -> None:
        """Give *resource* the new content of *step*; report what prevents that."""

    def remove(self, resource: ResourceKey, step: Step) -> None:
        """Delete *resource*; report labels on it and references to it."""

    def link(self, resource: ResourceKey, step: Step, attached: bool) -> None:
        """Attach the label of *step* to *resource*, or detach it; report where that is done already."""


@dataclass(frozen=True, slots=True)
class Effect(ABC):
    """
    The effect of one step on a platform.

    Attributes:
        step: The step: one of a plan, or the inverse of one.
    """

    step: Step
    makes: ClassVar[bool] = False
    """Whether it creates a resource, whose id the platform chooses."""
    removes: ClassVar[bool] = False
    """Whether it removes something; it need not be sent if that is gone already."""
    links: ClassVar[bool] = False
    """Whether it changes an association, not the content of a resource."""
    expects: ClassVar[bool] = False
    """Whether it overwrites or deletes existing content."""
    is_of_secret: ClassVar[bool] = False
    """Whether it is about a secret: no stack owns it, no value can be read, and values are kept in memory only."""

    @property
    def number(self) -> int:
        """The number of its step."""
        return self.step.number

    @property
    def shown(self) -> str:
        """The effect, for people."""
        return f"{self.step.verb.value} {self.step.key}"

    @property
    def seals(self) -> bool:
        """Whether nothing is undone once it may have been sent (docs/reference/engine.md, "Steps and stages")."""
        return self.step.undo is Undo.NONE

    @abstractmethod
    def inverse(self) -> Step:
        """
        The step that undoes it, from its full pre-image.

        It keeps the number. Ids are looked up by key: a resource that was created, or deleted and created again, has
        another id than in the plan.
        """

    def is_to_be_undone(self, outcome: Outcome) -> bool:
        """Whether a rollback has to undo it after it ended with *outcome*."""
        return isinstance(outcome, Done) and self.step.undo is not Undo.NONE

    def target(self, ids: ResourceIds) -> str:
        """Id of the resource that it acts on; empty for a creation and for a resource that does not exist."""
        return ids.find(self.step.key, self.step.resource_id)

    def label_id(self, ids: ResourceIds) -> str:
        """Id of the label it attaches or detaches; empty when the label does not exist, and for other effects."""
        return ids.find(self.step.label, self.step.label_id)

    def is_possible(self, ids: ResourceIds) -> bool:
        """Whether all resources that it needs exist."""
        return bool(self.target(ids)) and all(each.id for each in ids.references(self.step.references))

    def sending(self, ids: ResourceIds, before_ids: Collection[str] = ()) -> Sending:
        """The mutation that is sent for it now."""
        return Sending(
            self.target(ids),
            self.label_id(ids),
            ids.references(self.step.references),
            ids.references(self.step.old_references),
            before_ids,
        )

    def learn(self, ids: ResourceIds, resource_id: str) -> None:  # noqa: B027 - most change no id
        """Update *ids* after it took effect on the resource *resource_id*."""

    def is_resolved_by_retry(self, platform: PlatformTraits) -> bool:
        """Whether its unknown outcome is found by sending it again (docs/reference/engine.md, "Recovery")."""
        return False

    def is_repeatable(self, platform: PlatformTraits) -> bool:
        """Whether sending it twice has the effect of sending it once."""
        return True

    def is_searched_for(self, platform: PlatformTraits) -> bool:
        """Whether it is a creation that, without a response, is searched for among resources of its name."""
        return False

    def claims(self, ids: ResourceIds, platform: PlatformTraits) -> Sequence[Claimed]:
        """The claims that the operation needs before this is sent (docs/reference/engine.md, "Claims")."""
        return [ClaimedResource(self.step.key.kind, self.target(ids))]

    def claim_mode(self, what: Claimed) -> ClaimMode:
        """The mode of its claim on *what*."""
        return ClaimMode.ALONE

    def awaits_claims(self, platform: PlatformTraits) -> bool:
        """Whether it waits for a claim that another operation releases soon; else it fails."""
        return False

    @abstractmethod
    def finding(self, sending: Sending, live: Resource | None, traits: KindTraits) -> Finding:
        """
        The outcome, from the content of the platform now (docs/reference/engine.md, "Recovery").

        Args:
            sending: The mutation that was sent.
            live: The resource it was sent to; None when that certainly does not exist.
            traits: Of its kind.
        """

    @abstractmethod
    def rehearse(self, scene: Scene) -> None:
        """Compare the planned content with the one in *scene*, and perform the effect there."""

    def expected(self, stands: bool) -> Spec | None:
        """
        The content of its resource: after the step if the step *stands*, else before it. None: the step does not
        determine the content.
        """
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
