"""Organizations: one for each served target, with an id that is the same on every gateway."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.core.model import DEFAULT_ORG, DEFAULT_PLATFORM, Target
from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.ids import hex_id, is_id
from services.rpc.client import Peer


@dataclass(frozen=True, slots=True)
class Organization:
    """
    One organization.

    Attributes:
        id: 16 hex digits.
        name: Unique name.
        target: Its platform and organization, as the services know it.
    """

    id: str
    name: str
    target: Target


class Organizations:
    """The organizations of a gateway."""

    def __init__(self, planner: Peer, targets: Mapping[str, Target] | None = None) -> None:
        """
        Args:
            planner: The planner, which lists the platforms.
            targets: Targets to serve, by name of the organization; None: all organizations of all platforms.
        """
        self._planner = planner
        self._targets = targets
        self._by_id: dict[str, Organization] = {}
        self._by_target: dict[Target, Organization] = {}

    async def all(self) -> list[Organization]:
        """
        List the organizations that exist now, in the order of the platforms.

        Raises:
            Problem: A platform does not answer, and no other one has an organization.
        """
        orgs, silent = await self._listed()
        if silent and not orgs:
            raise silent
        return orgs

    async def of_id(self, text: str) -> Organization:
        """
        The organization with an id.

        Raises:
            Problem: There is none, or a platform that may have it does not answer.
        """
        if text not in self._by_id:
            _, silent = await self._listed()
            if text not in self._by_id:
                raise silent or Problem(
                    Code.NOT_FOUND, f"there is no organization {text}; /api/v2/orgs lists all organizations"
                )
        return self._by_id[text]

    async def of_name(self, name: str) -> Organization:
        """
        The organization with a name; blanks around the name are ignored.

        Raises:
            Problem: There is none, or a platform that may have it does not answer.
        """
        orgs, silent = await self._listed()
        for each in orgs:
            if each.name == name.strip():
                return each
        message = f"there is no organization {name.strip()[:200]!r}; /api/v2/orgs lists all organizations"
        raise silent or Problem(Code.NOT_FOUND, message)

    async def of_target(self, target: Target) -> Organization | None:
        """
        The organization of *target*; None when it is not served.

        Raises:
            Problem: A platform does not answer, so the id of the organization is unknown.
        """
        if target not in self._by_target:
            _, silent = await self._listed()
            if target not in self._by_target and self._targets is None:
                if silent:
                    raise silent
                return _organization(name_of(target, target.org), target)
        return self._by_target.get(target)

    async def _listed(self) -> tuple[list[Organization], Problem | None]:
        """The organizations of all platforms that answer, and the problem of the first platform that does not."""
        stub = PlannerServiceStub(self._planner.channel)
        answer = await self._planner.call(stub.ListPlatforms, planner_pb2.ListPlatformsRequest())
        if self._targets is None:
            orgs = [each for platform in answer.platforms for each in _of_platform(platform)]
        else:
            # The id of an organization that its platform does not list follows from its names.
            native = {
                Target(platform.name, org.id): org.native_id for platform in answer.platforms for org in platform.orgs
            }
            orgs = [_organization(name, target, native.get(target, "")) for name, target in self._targets.items()]
        self._cache(orgs)
        silent = next((each for each in answer.platforms if each.problem and self._is_served(each.name)), None)
        if silent is None:
            return orgs, None
        message = f"the organizations of platform {silent.name} cannot be listed: {silent.problem}"
        return orgs, Problem(Code.UNAVAILABLE, message, headers={"Retry-After": "1"})

    def _is_served(self, platform: str) -> bool:
        return self._targets is None or any(target.platform == platform for target in self._targets.values())

    def _cache(self, orgs: Iterable[Organization]) -> None:
        """Cache organizations: their ids never change, and the services check whether an organization still exists."""
        self._by_id.update((each.id, each) for each in orgs)
        self._by_target.update((each.target, each) for each in orgs)


def _of_platform(platform: planner_pb2.PlatformListing) -> list[Organization]:
    """The organizations of a platform. The default platform has a default organization before it holds a resource."""
    orgs = {org.id: org for org in platform.orgs}
    has_own_ids = any(org.native_id for org in platform.orgs)
    if platform.name == DEFAULT_PLATFORM and not platform.problem and not has_own_ids:
        orgs = {DEFAULT_ORG: object_pb2.Organization(id=DEFAULT_ORG, name=DEFAULT_ORG), **orgs}
    targets = [(org, Target(platform.name, org.id)) for org in orgs.values()]
    return [_organization(name_of(target, org.name), target, org.native_id) for org, target in targets]


def org_id(target: Target, native_id: str = "") -> str:
    """
    The id of the organization of a target.

    It is the id that the platform uses, if that has the form of an id, or else is derived from the names of the target.

    Args:
        target: The platform and its organization.
        native_id: Id by which clients of the platform know it; empty: the organization in the target.
    """
    for text in (native_id, target.org):
        if is_id(text):
            return text.lower()
    return hex_id(f"{target.platform}/{target.org}")


def name_of(target: Target, name: str) -> str:
    """The unique name of an organization whose name on its platform is *name*."""
    return name if target.platform == DEFAULT_PLATFORM else f"{target.platform}/{name}"


def _organization(name: str, target: Target, native_id: str = "") -> Organization:
    return Organization(org_id(target, native_id), name, target)
