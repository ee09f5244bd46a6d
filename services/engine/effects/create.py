"""Create a resource."""

from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar

from services.core.model import Identity, KindTraits, NameUniqueness, PlatformTraits, Resource, Step, Verb
from services.core.text_lists import listed
from services.engine.claims import Claimed, ClaimedName, claimed_names
from services.engine.content_match import matches
from services.engine.effects.effect import Effect, Scene, Sending
from services.engine.ids import ResourceIds
from services.engine.outcome import Done, Finding, NoEffect, Unknown

_SHOWN = 5


class Create(Effect):
    """Creates a resource."""

    __slots__ = ()
    makes: ClassVar[bool] = True

    def inverse(self) -> Step:
        """Delete the created resource."""
        return self._turned(Verb.DELETE)

    def target(self, ids: ResourceIds) -> str:
        """Empty: the resource does not exist yet."""
        return ""

    def is_possible(self, ids: ResourceIds) -> bool:
        """It needs the resources that it refers to."""
        return all(each.id for each in ids.references(self.step.references))

    def in_its_place(self, ids: ResourceIds) -> str:
        """Id of the resource that the created one replaces, if that still exists; else empty."""
        return ids.find(self.step.key, self.step.resource_id)

    def learn(self, ids: ResourceIds, resource_id: str) -> None:
        """The key, or the subject of a deleted resource that is created again, gets the id of the created resource."""
        ids.bind(self.step.key, self.step.resource_id, resource_id)

    def is_resolved_by_retry(self, platform: PlatformTraits) -> bool:
        """The platform performs a mutation with a known idempotency key once, and returns the outcome."""
        return self._identity(platform) is Identity.NATIVE

    def is_repeatable(self, platform: PlatformTraits) -> bool:
        """Without an idempotency key a second creation would make a second resource."""
        return self.is_resolved_by_retry(platform)

    def is_searched_for(self, platform: PlatformTraits) -> bool:
        """True if names may repeat and the platform has no idempotency keys."""
        return self._identity(platform) is Identity.SEARCH

    def claims(self, ids: ResourceIds, platform: PlatformTraits) -> Sequence[Claimed]:
        """The name of the resource; also a name that may repeat, if the resource can be found only by its name."""
        kind, spec = self.step.key.kind, self.step.new_spec
        if spec and self.awaits_claims(platform):
            return [ClaimedName(kind, spec.display_name)]
        return claimed_names(kind, [spec], platform)

    def awaits_claims(self, platform: PlatformTraits) -> bool:
        """A repeatable name is claimed only until the outcome of the creation is known."""
        may_repeat = platform.kinds[self.step.key.kind].name_uniqueness is NameUniqueness.NONE
        return may_repeat and self.is_searched_for(platform)

    def finding(self, sending: Sending, live: Resource | None, traits: KindTraits) -> Finding:
        """The outcome, where *live* is the only resource that may be the created one."""
        return self.finding_among(sending, [live] if live else [], (), traits)

    def finding_among(
        self, sending: Sending, live: Iterable[Resource], owned: Collection[str], traits: KindTraits
    ) -> Finding:
        """
        The outcome, where the platform has no idempotency keys.

        Args:
            sending: The mutation that was sent.
            live: All resources of its kind.
            owned: Ids of resources that a stack owns, or that this operation knows to be others.
            traits: Of the kind.
        """
        named = [resource for resource in live if self._has_its_name(resource, traits)]
        if traits.identity is Identity.SEARCH:
            return self._searched(sending, [each for each in named if each.id not in owned], traits)
        match named:
            case []:
                return NoEffect()
            case [resource] if resource.id not in owned and self._is_it(resource, sending, traits):
                return Done(resource.id)
            case [resource]:
                problem = f"{resource.kind} {resource.id} has the name, and differs from the resource to create"
                return Unknown(problem, is_conflict=True, resource_id="" if resource.id in owned else resource.id)
            case _:
                return Unknown(_several(named))

    def rehearse(self, scene: Scene) -> None:
        """Take its name, and refer to existing resources."""
        # A new resource needs an unused id: ids of platforms have no blanks.
        new_id = f"step {self.number}"
        scene.write((self.step.key.kind, new_id), self.step)
        self.learn(scene.ids, new_id)

    def _identity(self, platform: PlatformTraits) -> Identity:
        return platform.kinds[self.step.key.kind].identity

    def _searched(self, sending: Sending, named: Sequence[Resource], traits: KindTraits) -> Finding:
        new = [each for each in named if each.id not in sending.before_ids]
        alike = [each for each in new if self._is_it(each, sending, traits)]
        match alike:
            case [] if new:
                # A user may have edited the created resource; a second creation would leave it behind.
                problem = f"{new[0].kind} {new[0].id} is new, has the name, and differs from the resource to create"
                return Unknown(problem, is_conflict=True, resource_id="" if new[1:] else new[0].id)
            case []:
                return NoEffect()
            case [resource]:
                return Done(resource.id)
            case _:
                return Unknown(_several(alike))

    def _has_its_name(self, resource: Resource, traits: KindTraits) -> bool:
        assert self.step.new_spec is not None  # noqa: S101 - a creation has a spec
        names = (resource.spec.display_name, self.step.new_spec.display_name)
        return traits.compared_name(names[0]) == traits.compared_name(names[1])

    def _is_it(self, resource: Resource, sending: Sending, traits: KindTraits) -> bool:
        return matches(resource, self.step.new_spec, sending.references, traits)


def _several(candidates: Sequence[Resource]) -> str:
    ids = listed(sorted(each.id for each in candidates), _SHOWN)
    return f"any of {len(candidates)} resources may be the created one: {ids}"
