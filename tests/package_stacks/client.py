"""Packages are published, installed, updated and uninstalled, as a client of the services does it."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from pkger.model.v1 import object_pb2, operation_pb2, package_change_pb2, plan_pb2
from pkger.planner.v1 import package_pb2, planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import repository_pb2, stack_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import StackNotFound
from services.rpc.plan_parts import JoinedPlan
from tests.applier.faulty import FaultyDriver
from tests.applier.world import SUCCEEDED, Case, Snapshot, end
from tests.apply.packages import an_object
from tests.cluster import ALL_VIEWS, Cluster, InvalidPackage, Shown, with_options
from tests.packages.folders import manifest_text, write_repository
from tests.packages.resolving import published
from tests.packages.rows import package, request_of

Objects: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]
"""The objects of packages, by ``NAME@VERSION``, or by ``NAME`` for all versions without objects of their own."""

OPTIONS = package_pb2.ResolutionOptions.DESCRIPTOR.fields_by_name


class Conflict(Exception):
    """No versions go together, for the reason in ``answer``."""

    def __init__(self, answer: package_change_pb2.PackageConflict) -> None:
        super().__init__(answer.text)
        self.answer = answer
        self.code = package_change_pb2.ConflictCode.Name(answer.code).removeprefix("CONFLICT_CODE_")


def objects_text(objects: Sequence[Mapping[str, Any]]) -> str:
    """Objects as YAML."""
    return yaml.safe_dump_all(objects)


def folder(text: str, *objects: Mapping[str, Any]) -> package_pb2.PackageChange:
    """The installation of a local folder: the package as in ``rows``, with one version, and its objects."""
    name, written = package(text)
    [version] = published(name, written).versions.values()
    file = package_pb2.PackageFile(path="package.yaml", text=manifest_text(name, version) + objects_text(objects))
    return package_pb2.PackageChange(folder=package_pb2.PackageFolder(files=[file]))


def changes_of(words: str) -> list[package_pb2.PackageChange]:
    """Changes as words, as those of ``rows``."""
    request, changes = request_of(words), list[package_pb2.PackageChange]()
    for each in request.get("install", ()):
        install = package_pb2.PackageInstall(
            name=each["name"], version_range=each.get("version", ""), repository=each.get("repository", "")
        )
        changes.append(package_pb2.PackageChange(install=install))
    for each in request.get("update", ()):
        update = package_pb2.PackageUpdate(name=each["name"], version_range=each.get("version", ""))
        changes.append(package_pb2.PackageChange(update=update))
    if request.get("update_all"):
        changes.append(package_pb2.PackageChange(update_all=package_pb2.UpdateAll()))
    for name in request.get("uninstall", ()):
        changes.append(package_pb2.PackageChange(uninstall=package_pb2.PackageUninstall(name=name)))
    return changes


@dataclass
class Client:
    """
    A client that changes the packages of one stack.

    Attributes:
        services: The services, with an organization.
        root: The folder of the repositories.
        stack: The name of the stack.
        driver: The driver of the platform, if it has scripted faults.
    """

    services: Cluster
    root: Path
    stack: str = "packages"
    driver: FaultyDriver | None = None
    _repositories: set[str] = field(default_factory=set)

    @property
    def case(self) -> Case:
        """The stack for tests of operations."""
        return Case(self.services, self.driver, self.services.org, self.stack)  # type: ignore[arg-type]

    async def publish(
        self, *packages: str, objects: Objects | None = None, repository: str = "main", **fields: Any
    ) -> None:
        """
        Publish packages, each as in ``rows``, in place of all that *repository* has.

        Args:
            packages: The packages.
            objects: Their objects; a package without any has one label.
            repository: The repository.
            fields: Further fields of the repository when it is new.
        """
        by_name = objects or {}

        def text(name: str, version: str) -> str:
            own = by_name.get(f"{name}@{version}", by_name.get(name))
            return objects_text([a_label(name)] if own is None else own)

        address = write_repository(self.root / repository, packages, text).as_uri()
        if repository not in self._repositories:
            peer = self.services.peers["stack"]
            request = repository_pb2.CreateRepositoryRequest(name=repository, address=address, **fields)
            await peer.call(RepositoryServiceStub(peer.channel).CreateRepository, request)
            self._repositories.add(repository)

    async def remove_repository(self, name: str) -> None:
        """
        Take a repository off the list.

        Raises:
            RepositoryInUse: Packages are installed from it.
        """
        peer, request = self.services.peers["stack"], repository_pb2.DeleteRepositoryRequest(name=name)
        await peer.call(RepositoryServiceStub(peer.channel).DeleteRepository, request)

    async def plan(self, *changes: str | package_pb2.PackageChange, store: bool = True, **options: Any) -> Shown:
        """
        The plan of changes, each a message, or words as those of ``rows``.

        Args:
            changes: The changes.
            store: Whether to store it.
            options: Options of the resolution and of the plan, and fields of the request.

        Raises:
            Conflict: No versions go together.
            InvalidPackage: A package breaks rules.
        """
        messages: list[package_pb2.PackageChange] = []
        for each in changes:
            messages += changes_of(each) if isinstance(each, str) else [each]
        consent = {name: options.pop(name) for name in [*options] if name in OPTIONS}
        request = planner_pb2.CreatePlanRequest(
            stack=options.pop("stack_ref", None) or self.ref,
            packages=package_pb2.PackageChanges(
                changes=messages, options=package_pb2.ResolutionOptions(**consent), refresh=True
            ),
            validate_only=not store,
            view=ALL_VIEWS,
            **with_options(options),
        )
        return await self.planned(request)

    async def planned(self, request: planner_pb2.CreatePlanRequest) -> Shown:
        """The plan of *request*, as ``plan``."""
        peer, plan, violations = self.services.peers["planner"], JoinedPlan(), list[object_pb2.Violation]()
        async for answer in peer.stream(PlannerServiceStub(peer.channel).CreatePlan, request):
            match answer.WhichOneof("answer"):
                case "conflict":
                    raise Conflict(answer.conflict)
                case "violations":
                    violations += answer.violations.violations
                case _:
                    plan.add(answer.part)
        if violations:
            raise InvalidPackage(violations)
        return Shown(plan)

    async def run(self, plan: Shown, **more: Any) -> operation_pb2.Finished:
        """An apply of a stored plan to its end."""
        return end([event async for event in self.services.apply_plan(plan.name, plan.digest, **more)])

    async def change(self, *changes: str | package_pb2.PackageChange, **options: Any) -> Shown:
        """Plan changes and apply the plan, which succeeds and leaves nothing to do; as ``plan``."""
        plan = await self.plan(*changes, **options)
        finished = await self.run(plan)
        assert (finished.state, finished.leftover_count) == (SUCCEEDED, 0), finished
        return plan

    async def conflict(self, *changes: str | package_pb2.PackageChange, **options: Any) -> Conflict:
        """Why there is no plan of changes, as ``plan``."""
        try:
            plan = await self.plan(*changes, **options)
        except Conflict as conflict:
            return conflict
        raise AssertionError(f"there is a plan: {plan_lines(plan)}")

    @property
    def ref(self) -> object_pb2.StackRef:
        """The stack."""
        return object_pb2.StackRef(target=self.services.target(), name=self.stack)

    async def installed(self) -> list[package_change_pb2.InstalledPackage]:
        """The installed packages, by name; none without a stack."""
        peer, request = self.services.peers["stack"], stack_pb2.ListPackagesRequest(stack=self.ref)
        packages: list[package_change_pb2.InstalledPackage] = []
        with contextlib.suppress(StackNotFound):
            while True:
                page = await peer.call(StackServiceStub(peer.channel).ListPackages, request)
                packages += page.packages
                if not page.next_page_token:
                    break
                request.page_token = page.next_page_token
        return packages

    async def versions(self) -> dict[str, str]:
        """The versions of the installed packages."""
        return {each.name: each.version for each in await self.installed()}

    async def look(self) -> Snapshot:
        """Platform and record."""
        return await self.case.look()

    async def ids(self) -> dict[str, str]:
        """The ids of the recorded resources, by ``KIND:NAME``."""
        record = (await self.look()).record
        return {f"{each.key.kind}:{each.key.name}": each.resource_id for each in record.resources} if record else {}

    async def state(self) -> tuple[Any, ...]:
        """All that is there: platform, inventory, packages, the header of the stack and its newest revision."""
        snapshot, packages = await self.look(), await self.installed()
        return (
            [each.SerializeToString(deterministic=True) for each in snapshot.resources],
            snapshot.record and [each.SerializeToString(deterministic=True) for each in snapshot.record.resources],
            snapshot.record and snapshot.record.stack.SerializeToString(deterministic=True),
            [each.SerializeToString(deterministic=True) for each in packages],
        )


def a_label(name: str, color: str = "", display_name: str = "", **spec: Any) -> dict[str, Any]:
    """A label, which is displayed as ``label of NAME`` unless *display_name* says otherwise."""
    written = {**spec, **({"color": color} if color else {})}
    return an_object("Label", name, display_name or f"label of {name}", **written)


_SYMBOLS = {
    package_change_pb2.PACKAGE_ACTION_INSTALL: "+",
    package_change_pb2.PACKAGE_ACTION_UPDATE: "^",
    package_change_pb2.PACKAGE_ACTION_DOWNGRADE: "v",
    package_change_pb2.PACKAGE_ACTION_REMOVE: "-",
    package_change_pb2.PACKAGE_ACTION_MARK: "!",
}


def change_words(changes: Sequence[package_change_pb2.PlannedPackage]) -> str:
    """Changes of packages as one line, as in ``rows``."""
    return ", ".join(
        f"{_SYMBOLS[each.action]}{each.name}{f' {each.new_version}' if each.new_version else ''}" for each in changes
    )


def plan_lines(plan: Shown) -> list[str]:
    """The packages of a plan as lines, as in ``rows``, and its warnings."""
    lines = [change_words(plan.header.packages)]
    held_back = [each.name for each in plan.parts.remarks.held_back]
    return lines + ([f"held back: {' '.join(held_back)}"] if held_back else []) + plan.warnings


def conflict_lines(conflict: package_change_pb2.PackageConflict) -> list[str]:
    """A conflict as lines, as in ``rows``."""
    code = package_change_pb2.ConflictCode.Name(conflict.code).removeprefix("CONFLICT_CODE_")
    lines = [f"{'R' if conflict.resolvable else 'N'} {code}"]
    for each in conflict.suggestions:
        kind = package_change_pb2.SuggestionKind.Name(each.kind).removeprefix("SUGGESTION_KIND_")
        lines.append(f"{kind.lower().replace('_', '-')}: {change_words(each.changes)}")
    names = sorted({name for fact in conflict.facts for name in fact.packages})
    return [*lines, f"facts: {' '.join(names)}"]


def step_words(plan: Shown) -> list[str]:
    """The steps of a plan, each as verb and key."""
    return [
        f"{each.verb.value} {each.key.kind} {each.key.name}{f' {each.label.name}' if each.label else ''}"
        for each in plan.steps
    ]


def spec_of(resource: object_pb2.Resource) -> dict[str, Any]:
    """The spec of a live resource."""
    spec: dict[str, Any] = json.loads(resource.spec_json)
    return spec


DELETE_STACK = plan_pb2.AFTER_UNINSTALL_DELETE
