"""Organisations: one for each target that is served, with an id that is the same on every gateway."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.core.model import DEFAULT_ORG, DEFAULT_PLATFORM, Target
from services.gateway.answers import Code
from services.gateway.documents.ids import hex_id
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
        self._given = given
        self._known: dict[str, Organisation] = {}
        self._by_target: dict[Target, Organisation] = {}

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

    async def of_target(self, target: Target) -> Organisation | None:
        """
        The one that is *target*; None when it is not served.

        Raises:
            Problem: Its platform does not answer, so that its id is not known.
        """
        if target not in self._by_target:
            _, silent = await self._listed()
            if target not in self._by_target and self._given is None:
                if silent:
                    raise silent
                return _organisation(name_of(target, target.org), target)
        return self._by_target.get(target)

    async def _listed(self) -> tuple[list[Organisation], Problem | None]:
        """Those of all platforms that answer, and what to say of one that does not."""
        stub = PlannerServiceStub(self._planner.channel)
        answer = await self._planner.call(stub.ListPlatforms, planner_pb2.ListPlatformsRequest())
        if self._given is None:
            found = [each for platform in answer.platforms for each in _of_platform(platform)]
        else:
            # Ids of those that hold nothing yet, or whose platform lists none, follow from their names.
            native = {
                Target(platform.name, org.id): org.native_id for platform in answer.platforms for org in platform.orgs
            }
            found = [_organisation(name, target, native.get(target, "")) for name, target in self._given.items()]
        self._learn(found)
        silent = next((each for each in answer.platforms if each.problem and self._is_served(each.name)), None)
        if silent is None:
            return found, None
        told = f"the organisations of platform {silent.name} are not known: {silent.problem}"
        return found, Problem(Code.UNAVAILABLE, told, headers={"Retry-After": "1"})

    def _is_served(self, platform: str) -> bool:
        return self._given is None or any(target.platform == platform for target in self._given.values())

    def _learn(self, found: Iterable[Organisation]) -> None:
        """Remember what ids stand for: that never changes, and whether it is still there is for the services to say."""
        self._known.update((each.id, each) for each in found)
        self._by_target.update((each.target, each) for each in found)


def _of_platform(platform: planner_pb2.PlatformListing) -> list[Organisation]:
    """Those of a platform; where anybody may name one, the default one is there although it holds nothing yet."""
    orgs = {org.id: org for org in platform.orgs}
    has_own_ids = any(org.native_id for org in platform.orgs)
    if platform.name == DEFAULT_PLATFORM and not platform.problem and not has_own_ids:
        orgs = {DEFAULT_ORG: object_pb2.Organization(id=DEFAULT_ORG, name=DEFAULT_ORG), **orgs}
    targets = [(org, Target(platform.name, org.id)) for org in orgs.values()]
    return [_organisation(name_of(target, org.name), target, org.native_id) for org, target in targets]


def org_id(target: Target, native_id: str = "") -> str:
    """
    The id of a target: the one that its platform has for it, where that is an id; else one that follows from its names.

    Args:
        target: The platform, and its organisation.
        native_id: Id by which clients of the platform know it; empty: what the target names.
    """
    for text in (native_id, target.org):
        if is_id(text):
            return text.lower()
    return hex_id(f"{target.platform}/{target.org}")


def name_of(target: Target, name: str) -> str:
    """The name of an organisation that its platform calls *name*."""
    return name if target.platform == DEFAULT_PLATFORM else f"{target.platform}/{name}"


def _organisation(name: str, target: Target, native_id: str = "") -> Organisation:
    return Organisation(org_id(target, native_id), name, target)
