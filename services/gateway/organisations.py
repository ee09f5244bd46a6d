"""Organisations: one for each target that is served, with an id that is the same on every gateway."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.core.model import DEFAULT_ORG, DEFAULT_PLATFORM, Target
from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.ids import is_id
from services.rpc.client import Peer


@dataclass(frozen=True, slots=True)
class Organisation:
    """
    One organisation.

    Attributes:
        id: 16 hex digits.
        name: Name for people, which no other one has.
        target: What it is for the services.
    """

    id: str
    name: str
    target: Target


class Organisations:
    """The organisations of a gateway."""

    def __init__(self, planner: Peer, given: Mapping[str, Target] | None = None) -> None:
        """
        Args:
            planner: Knows the platforms.
            given: Those that are served, by name; None: all of all platforms.
        """
        self._planner = planner
        self._given = None if given is None else tuple(map(_named, given, given.values()))
        self._known: dict[str, Organisation] = {}

    async def all(self) -> list[Organisation]:
        """
        Those that there are now, by platform and id.

        Raises:
            Problem: A platform does not answer, and none other is there.
        """
        found, silent = await self._listed()
        if silent and not found:
            raise silent
        return found

    async def of_id(self, text: str) -> Organisation:
        """
        The one with an id.

        Raises:
            Problem: There is none, or a platform that may have it does not answer.
        """
        if text not in self._known:
            _, silent = await self._listed()
            if text not in self._known:
                raise silent or Problem(
                    Code.NOT_FOUND, f"there is no organisation {text}; /api/v2/orgs lists those that are"
                )
        return self._known[text]

    async def of_name(self, name: str) -> Organisation:
        """
        The one with a name; blanks around it do not count.

        Raises:
            Problem: There is none, or a platform that may have it does not answer.
        """
        found, silent = await self._listed()
        for each in found:
            if each.name == name.strip():
                return each
        told = f"there is no organisation {name.strip()[:200]!r}; /api/v2/orgs lists those that are"
        raise silent or Problem(Code.NOT_FOUND, told)

    def of_target(self, target: Target) -> Organisation | None:
        """The one that is *target*; None when it is not served."""
        if self._given is None:
            return _named(name_of(target, target.org), target)
        return next((each for each in self._given if each.target == target), None)

    async def _listed(self) -> tuple[list[Organisation], Problem | None]:
        """Those of all platforms that answer, and what to say of one that does not."""
        if self._given is not None:
            self._learn(self._given)
            return list(self._given), None
        stub = PlannerServiceStub(self._planner.channel)
        answer = await self._planner.call(stub.ListPlatforms, planner_pb2.ListPlatformsRequest())
        found = [each for platform in answer.platforms for each in _of_platform(platform)]
        self._learn(found)
        silent = next((each for each in answer.platforms if each.problem), None)
        if silent is None:
            return found, None
        told = f"the organisations of platform {silent.name} are not known: {silent.problem}"
        return found, Problem(Code.UNAVAILABLE, told, headers={"Retry-After": "1"})

    def _learn(self, found: Iterable[Organisation]) -> None:
        """Remember what ids stand for: that never changes, and whether it is still there is for the services to say."""
        self._known.update((each.id, each) for each in found)


def _of_platform(platform: planner_pb2.PlatformListing) -> list[Organisation]:
    """Those of a platform; the default one is there although it holds nothing yet, and is not told of then."""
    names = {org.id: org.name for org in platform.orgs}
    if platform.name == DEFAULT_PLATFORM and not platform.problem:
        names = {DEFAULT_ORG: DEFAULT_ORG, **names}
    targets = [(name, Target(platform.name, org)) for org, name in names.items()]
    return [_named(name_of(target, name), target) for name, target in targets]


def org_id(target: Target) -> str:
    """The id of a target: its own, where that is one, else one that follows from its names."""
    if is_id(target.org):
        return target.org
    return hashlib.sha256(f"{target.platform}/{target.org}".encode()).hexdigest()[:16]


def name_of(target: Target, name: str) -> str:
    """The name of an organisation that its platform calls *name*."""
    return name if target.platform == DEFAULT_PLATFORM else f"{target.platform}/{name}"


def _named(name: str, target: Target) -> Organisation:
    return Organisation(org_id(target), name, target)
