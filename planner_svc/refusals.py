"""
The reasons for which a plan is refused: one ordered list of checks.

What a plan is made of becomes known step by step: the request, then package and record, then the live resources. A
check looks at one type of facts and runs as soon as these are known, so a faulty request is refused before a platform
is read. Checks run in the order of the list, and the first one that refuses decides the error.

Two outcomes are no checks: what cannot be read, such as an unknown stack, is an error of ``reading.py``; a package that
breaks rules is an answer with violations.
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
    Where a package comes from: the sources of the request, and the URLs of its stack.

    Attributes:
        request: The request.
        urls: The URLs of its stack.
        stack_name: The name of that; empty: it has none, or there is none.
    """

    request: planner_pb2.CreatePlanRequest
    urls: Sequence[str]
    stack_name: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """
    What the request, the package, the record and the platform say.

    Attributes:
        desired: What is wanted.
        stack: The record that the plan is based on.
        platform: The platform.
        skips: What the request leaves out, as it names that.
        credentials: Places of the package that hold credentials, as far as the parser knows them.
    """

    desired: Desired
    stack: StackRecord
    platform: PlatformTraits
    skips: Sequence[Key] = ()
    credentials: Sequence[Credential] = ()


@dataclass(frozen=True, slots=True)
class Matched:
    """
    Which live resource belongs to which object.

    Attributes:
        desired: What is wanted.
        stack: The record that the plan is based on.
        matching: The matches.
        holders: Owners of the resources that the plan takes from elsewhere, as far as they have any.
    """

    desired: Desired
    stack: StackRecord
    matching: Matching
    holders: Mapping[ResourceKey, Holders]


@dataclass(frozen=True, slots=True)
class Prepared:
    """
    What the platform would hold.

    Attributes:
        platform: Configured name of the platform.
        matching: The matches.
        specs: For each object that differs from what is live, the spec that the platform would hold, or why it would
            hold none.
    """

    platform: str
    matching: Matching
    specs: Mapping[Key, Spec | Failed]


@dataclass(frozen=True, slots=True)
class Compared:
    """
    What is different between the resources and the objects.

    Attributes:
        desired: What is wanted.
        platform: The platform.
        matching: The matches.
        differences: The differences.
        conflicts: What the plan changes of resources that no stack owns.
    """

    desired: Desired
    platform: PlatformTraits
    matching: Matching
    differences: Differences
    conflicts: Sequence[Conflict]


@dataclass(frozen=True, slots=True)
class Staged:
    """
    What the plan does.

    Attributes:
        steps: Its steps.
        matching: The matches.
        holders: Owners of the resources that use what the plan deletes, as far as they have any.
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
        facts: The type of the facts that it looks at.
        refuse: Raises a PkgerError if the reason applies.
    """

    name: str
    facts: type[Facts]
    refuse: Callable[[Facts], None]


FACTS = (planner_pb2.CreatePlanRequest, Sourced, Asked, Matched, Prepared, Compared, Schedule, Staged)
"""The types of facts, in the order in which they become known."""


def _refuse_nothing_desired(request: planner_pb2.CreatePlanRequest) -> None:
    if not request.HasField("desired"):
        raise RequestInvalid("desired", "say what is wanted: a package, or destroy")


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
            raise RequestInvalid("stack.nameless", "it is true, or another way names the stack")
        case "nameless", desired:
            raise RequestInvalid("stack.nameless", f"{desired} is for a stack that is named by id or by name")


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
        "a resource of nobody would be replaced",
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
"""All checks, in the order in which they run. A new reason is a row behind the reasons that take precedence."""


def run_checks(facts: object) -> None:
    """
    Run the checks that look at *facts*, whose type is one of ``FACTS``.

    Raises:
        PkgerError: The first check that refuses.
    """
    for check in CHECKS:
        if isinstance(facts, check.facts):
            check.refuse(facts)
