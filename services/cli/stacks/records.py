"""``pkger stacks init`` and ``pkger stacks update``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pkger.model.v1 import check_pb2, object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import policy_pb2, stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.cli.errors import plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console, print_warnings
from services.cli.output.documents import print_document
from services.cli.packages import values
from services.cli.packages.address_warnings import address_warnings
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session, session
from services.cli.stacks.resource_holders import NO_HOLDERS
from services.cli.stacks.stack_text import print_stack
from services.core.errors import OrgUnknown
from services.drivers.registry import DRIVERS
from services.kinds.format.canonical import plain
from services.platforms import find_platform, read_platforms
from services.rpc.convert.policies import checked_policy, policy_to_pb
from services.rpc.message_json import document_of
from services.settings import is_configured, load

NEEDS = ("stack",)
CHECKING = ("planner", "stack", "platform")

_WITH_IMPLICIT_ORGS = ("embedded",)
"""Drivers whose organizations come into being with their first resource, so there is nothing to check."""


@dataclass(frozen=True, slots=True)
class Described:
    """
    The header of a stack as a user sets it; None: unchanged.

    Attributes:
        name: Its name; empty: none.
        description: Free text.
        urls: Addresses of packages, in order.
    """

    name: str | None = None
    description: str | None = None
    urls: Sequence[str] | None = None


async def init(
    described: Described, policy: str, platform: str, org: str, environ: Mapping[str, str], output: str
) -> None:
    """
    Create an empty stack, and print it; *policy*: file with its policy, empty for all defaults.

    Raises:
        CommandFailed: The stack exists, there is no such platform, or a name, a URL or the policy is not valid.
    """
    with Interrupts() as interrupts, plain_errors():
        request = stack_pb2.CreateStackRequest(
            target=object_pb2.Target(platform=platform, org=org),
            name=described.name or "",
            description=described.description or "",
            urls=described.urls,
            policy=policy_message(values.mapping("--policy", policy)) if policy else None,
        )
        needs = _needs(platform, environ)
        async with session(needs, environ, platform) as services:
            if needs == CHECKING:
                await interrupts.or_stop(_refuse_unknown_target(services, request.target))
            stub = StackServiceStub(services.stack.channel)
            stack = (await interrupts.or_stop(services.stack.call(stub.CreateStack, request))).stack
    _print(stack, output)
    print_warnings(address_warnings(described.urls or ()))


def _needs(platform: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """
    The services that check the target of a new stack and create it: the store knows no platforms.

    Raises:
        PlatformUnknown: The file of this machine does not have the platform, and no server is named.
        PlatformsInvalid: The platforms file cannot be used.
    """
    if not platform or is_configured(environ):
        return CHECKING if platform else NEEDS
    row = find_platform(read_platforms(load(environ), DRIVERS), platform)
    return NEEDS if row.driver in _WITH_IMPLICIT_ORGS else CHECKING


async def _refuse_unknown_target(services: Session, target: object_pb2.Target) -> None:
    """
    Refuse a platform that is not configured, and an organization that the platform does not have.

    Raises:
        PlatformUnknown: The planner has no platform of that name.
        OrgUnknown: The platform has no such organization.
    """
    stub = PlannerServiceStub(services.planner.channel)
    request = planner_pb2.CheckPlatformRequest(platform=target.platform, org=target.org)
    answer = await services.planner.call(stub.CheckPlatform, request)
    for finding in answer.check.findings:
        if (finding.aspect, finding.verdict) == (check_pb2.CHECK_ASPECT_ORG, check_pb2.CHECK_VERDICT_WRONG):
            raise OrgUnknown(target.platform, target.org, finding.message)


async def update(
    name: str, changes: Described, etag: str, platform: str, org: str, environ: Mapping[str, str], output: str
) -> None:
    """
    Change the header of a stack, and print it.

    Args:
        name: Its name or its id.
        changes: What changes.
        etag: The etag that the stack must have; empty: any.
        platform: Platform; empty for the default one.
        org: Organization; empty for the default one.
        environ: The environment.
        output: "text" or "json".

    Raises:
        CommandFailed: There is no such stack, another one has the new name, or a name or a URL is not valid.
    """
    target = object_pb2.Target(platform=platform, org=org)
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            ref = await interrupts.or_stop(ref_of(services.stack, target, name))
            request = stack_pb2.UpdateStackRequest(
                stack=ref,
                etag=etag,
                name=changes.name,
                description=changes.description,
                urls=None if changes.urls is None else stack_pb2.StackUrls(urls=changes.urls),
            )
            stub = StackServiceStub(services.stack.channel)
            updated = (await interrupts.or_stop(services.stack.call(stub.UpdateStack, request))).stack
    _print(updated, output)
    print_warnings(address_warnings(changes.urls or ()))


def policy_message(policy: Mapping[str, Any]) -> policy_pb2.Policy:
    """
    A policy that a user wrote as a message.

    Raises:
        RequestInvalid: It is not valid; the error names the field.
    """
    # YAML values that JSON does not have, such as dates, become texts.
    return policy_to_pb(checked_policy(plain(policy)))


def _print(stack: stack_pb2.Stack, output: str) -> None:
    if output != "text":
        print_document(document_of(stack), output)
    else:
        print_stack(console(), stack, (), NO_HOLDERS)
