"""
The reasons for which a plan is refused: one ordered list of checks.

The facts of a plan become known one after the other: the request, then package and record, then the live resources. A
check reads one type of facts and runs as soon as they are known, so an invalid request is refused before a platform is
read. Checks run in the order of the list, and the first one that refuses decides the error.

Two cases are not checks. A failure to read, such as an unknown stack, is an error of ``reading.py``. A package that
breaks rules is a response with violations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pkger.planner.v1 import planner_pb2

from planner_svc.conflicts import refuse_replacements
from planner_svc.credentials import refuse_written_secrets
from planner_svc.differences import Differences
from planner_svc.matching import (
    Matching,
    refuse_adoptions,
    refuse_clashes,
    refuse_emptying,
    refuse_unsupported_kinds,
)
from planner_svc.names import refuse_equal_names, refuse_taken_names
from planner_svc.preparing import refuse_content
from planner_svc.references import refuse_missing_references
from planner_svc.secrets import refuse_unusable_keys
from planner_svc.sharing import Holders, refuse_differing, refuse_owned, refuse_sharing, refuse_used_replacements
from planner_svc.skipping import refuse_unknown_kinds
from planner_svc.steps import Schedule, refuse_cycles
from planner_svc.uses import refuse_used
from services.core.errors import RequestInvalid
from services.core.model import Conflict, Credential, Desired, Key, PlatformTraits, ResourceKey, Spec, StackRecord, Step
from services.engine.outcome import Failed

Facts = TypeVar("Facts")


@dataclass(frozen=True, slots=True)
class Sourced:
    """
    The sources of a package: those of the request, and the URLs of its stack.

    Attributes:
        request: The request.
        urls: The URLs of its stack.
        stack_name: The name of its stack; empty: the stack has no name, or there is no stack.
    """

    request: planner_pb2.CreatePlanRequest
    urls: Sequence[str]
    stack_name: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """
    The facts of the request, the package, the record and the platform.

    Attributes:
        desired: The desired state.
        stack: The record that the plan is based on.
        platform: The platform.
        skips: The skips of the request, as it has them.
        credentials: The credentials of the package whose location the parser knows.
    """

    desired: Desired
    stack: StackRecord
    platform: PlatformTraits
    skips: Sequence[Key] = ()
    credentials: Sequence[Credential] = ()


@dataclass(frozen=True, slots=True)
class Matched:
    """
    The matches of objects and live resources.

    Attributes:
        desired: The desired state.
        stack: The record that the plan is based on.
        matching: The matches.
        holders: Owners of the resources that the plan adopts or changes, where they have one.
    """

    desired: Desired
    stack: StackRecord
    matching: Matching
    holders: Mapping[ResourceKey, Holders]


@dataclass(frozen=True, slots=True)
class Prepared:
    """
    The specs as the platform would hold them.

    Attributes:
        platform: Configured name of the platform.
        matching: The matches.
        specs: For each object that differs from its live resource, the spec that the platform would hold, or the
            failure with which it rejects the spec.
    """

    platform: str
    matching: Matching
    specs: Mapping[Key, Spec | Failed]


@dataclass(frozen=True, slots=True)
class Compared:
    """
    The differences of resources and objects.

    Attributes:
        desired: The desired state.
        platform: The platform.
        matching: The matches.
        differences: The differences.
        conflicts: The unowned resources that the plan overwrites or replaces.
    """

    desired: Desired
    platform: PlatformTraits
    matching: Matching
    differences: Differences
    conflicts: Sequence[Conflict]


@dataclass(frozen=True, slots=True)
class Staged:
    """
    The steps of the plan.

    Attributes:
        steps: Its steps.
        matching: The matches.
        holders: Owners of the resources that use resources that the plan deletes, where they have one.
        stack: The record that the plan is based on.
    """

    steps: Sequence[Step]
    matching: Matching
    holders: Mapping[ResourceKey, Holders]
    stack: StackRecord


@dataclass(frozen=True, slots=True)
class Check(Generic[Facts]):
    """
    One reason for which a plan is refused.

    Attributes:
        name: The reason, in a few words.
        facts: The type of the facts that it reads.
        refuse: Raises a PkgerError if the reason applies.
    """

    name: str
    facts: type[Facts]
    refuse: Callable[[Facts], None]


FACTS = (planner_pb2.CreatePlanRequest, Sourced, Asked, Matched, Prepared, Compared, Schedule, Staged)
"""The types of facts, in the order in which they become known."""


def _refuse_nothing_desired(request: planner_pb2.CreatePlanRequest) -> None:
    if not request.HasField("desired"):
        raise RequestInvalid("desired", "give a package, a revision, or destroy")


def _refuse_no_sources(sourced: Sourced) -> None:
    request = sourced.request
    if request.HasField("package") and not (request.package.sources or sourced.urls):
        stack = sourced.stack_name or request.stack.name or request.stack.id
        problem = f"stack {stack!r} has no URLs, so name at least one source" if stack else "name at least one source"
        raise RequestInvalid("package.sources", problem)


def _refuse_nameless_without_package(request: planner_pb2.CreatePlanRequest) -> None:
    match request.stack.WhichOneof("stack"), request.WhichOneof("desired"):
        case "nameless", "package" if request.stack.nameless:
            return
        case "nameless", "package":
            raise RequestInvalid("stack.nameless", "set it to true, or name the stack by id or by name")
        case "nameless", desired:
            raise RequestInvalid("stack.nameless", f"{desired} needs a stack that is named by id or by name")


CHECKS: tuple[Check[Any], ...] = (
    Check("nothing is desired", planner_pb2.CreatePlanRequest, _refuse_nothing_desired),
    Check("no objects find the stack", planner_pb2.CreatePlanRequest, _refuse_nameless_without_package),
    Check("a package has no sources", Sourced, _refuse_no_sources),
    Check("a skip names no kind", Asked, lambda asked: refuse_unknown_kinds(asked.skips)),
    Check(
        "the package holds credentials",
        Asked,
        lambda asked: refuse_written_secrets(asked.desired, asked.platform, asked.credentials),
    ),
    Check("a secret cannot be written", Asked, lambda asked: refuse_unusable_keys(asked.desired, asked.platform)),
    Check(
        "the platform lacks a kind",
        Asked,
        lambda asked: refuse_unsupported_kinds(asked.desired, asked.stack, asked.platform),
    ),
    Check("objects and resources clash by name", Matched, lambda matched: refuse_clashes(matched.matching)),
    Check(
        "an empty package takes all",
        Matched,
        lambda matched: refuse_emptying(matched.desired, matched.matching, matched.stack),
    ),
    Check(
        "the policy adopts nothing",
        Matched,
        lambda matched: refuse_adoptions(matched.matching, matched.stack),
    ),
    Check(
        "the policy shares nothing",
        Matched,
        lambda matched: refuse_sharing(matched.desired, matched.matching, matched.stack),
    ),
    Check(
        "another operation claims a resource",
        Matched,
        lambda matched: refuse_owned(matched.matching, matched.holders, matched.stack),
    ),
    Check(
        "the platform refuses content",
        Prepared,
        lambda prepared: refuse_content(prepared.platform, prepared.matching, prepared.specs),
    ),
    Check(
        "a reference leads to nothing",
        Compared,
        lambda compared: refuse_missing_references(compared.differences.missing_references),
    ),
    Check(
        "a shared resource differs",
        Compared,
        lambda compared: refuse_differing(compared.matching, compared.differences),
    ),
    Check(
        "another stack uses what is replaced",
        Compared,
        lambda compared: refuse_used_replacements(compared.matching, compared.differences),
    ),
    Check(
        "an unowned resource would be replaced",
        Compared,
        lambda compared: refuse_replacements(compared.desired, compared.conflicts, compared.differences),
    ),
    Check(
        "two objects have one name",
        Compared,
        lambda compared: refuse_equal_names(compared.matching, compared.platform),
    ),
    Check("a name is not free in time", Schedule, lambda schedule: refuse_taken_names(schedule.names)),
    Check("objects exchange their names", Schedule, refuse_cycles),
    Check(
        "another stack uses what is deleted",
        Staged,
        lambda staged: refuse_used(staged.steps, staged.matching, staged.holders, staged.stack),
    ),
)
"""All checks, in the order in which they run. Put a new check after the checks that take precedence over it."""


def run_checks(facts: object) -> None:
    """
    Run the checks that read *facts*, whose type is one of ``FACTS``.

    Raises:
        PkgerError: The first check that refuses.
    """
    for check in CHECKS:
        if isinstance(facts, check.facts):
            check.refuse(facts)
