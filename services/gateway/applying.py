"""``POST /api/v2/templates/apply``: a dry run makes a plan, an apply makes a plan and runs it."""

import asyncio
import hashlib
import math
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.journal.v1 import planning_pb2
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceStub
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import PkgerError, PlanStale, RequestInvalid, StackMoved
from services.gateway.answers import Answer, Code
from services.gateway.documents.answer import answer_json, refused_document
from services.gateway.errors import Problem
from services.gateway.http_request import HttpRequest
from services.gateway.organizations import Organization, Organizations
from services.gateway.progress import Run, run_to_end
from services.gateway.requests.apply import Apply, read_apply
from services.gateway.requests.templates import Encoding, Template
from services.gateway.run_plan import Runner
from services.gateway.services import Services
from services.gateway.stack_reading import StackReader
from services.gateway.stacks import other_org
from services.gateway.threads import off_loop
from services.gateway.warnings import warning_headers
from services.rpc.convert.objects import target_to_pb
from services.rpc.convert.values import env_texts
from services.rpc.plan_parts import JoinedPlan, joined
from services.views.ids import fill_in_diffs
from services.views.warnings import warning_lines

ATTEMPTS = 3
"""How many plans are made for one apply: a plan that is stale before it runs is made again."""

DOCUMENT = (plan_pb2.PLAN_VIEW_DIFFS, plan_pb2.PLAN_VIEW_SUMMARY)
"""The parts of a plan that an answer is made of."""

_ENCODINGS = {
    Encoding.UNKNOWN: parser_pb2.ENCODING_UNSPECIFIED,
    Encoding.YAML: parser_pb2.ENCODING_YAML,
    Encoding.JSON: parser_pb2.ENCODING_JSON,
    Encoding.JSONNET: parser_pb2.ENCODING_JSONNET,
}


@dataclass(frozen=True, slots=True)
class _Done:
    """
    The result of an apply.

    Attributes:
        plan: The plan, with the ids of the resources that it created.
        stack_id: The stack of the plan; empty if the apply left no stack.
    """

    plan: JoinedPlan
    stack_id: str


class ApplyRoutes:
    """The handler."""

    def __init__(self, services: Services, orgs: Organizations, stacks: StackReader, runner: Runner) -> None:
        self._services, self._orgs, self._stacks, self._runner = services, orgs, stacks, runner

    async def apply(self, request: HttpRequest) -> Answer:
        """Plan the package in the body, and run the plan unless the request is a dry run."""
        body = await request.body()
        apply = await off_loop(len(body), read_apply, body, request.media_type)
        del body
        org = await self._orgs.of_id(apply.org_id)
        if apply.stack_id:
            _, owner = await self._stacks.stack(apply.stack_id)
            if owner != org:
                raise other_org(apply.stack_id, owner)
        if apply.is_dry:
            written, plan = await self._planned(apply, org)
            if isinstance(plan, list):
                return _refusal(plan)
            if apply.plan_digest not in ("", plan.header.digest):
                raise _other_plan(plan.header.digest)
            stack_id, new_keys = plan.header.stack_id, written.keys() - apply.secrets.keys()
            # Frees the memory of a large package before the answer is made.
            del apply
            return await off_loop(_size(plan), _answer, plan, 200, stack_id, org, new_keys)
        done = await self._applied(apply, org, request)
        if isinstance(done, list):
            return _refusal(done)
        return await off_loop(_size(done.plan), _answer, done.plan, 201, done.stack_id, org)

    async def _applied(self, apply: Apply, org: Organization, request: HttpRequest) -> "_Done | list[Any]":
        """
        Make a plan and run it; a plan that is stale when it is to run is made again.

        Returns:
            The result of the apply, or all violations of the package.

        Raises:
            Problem: The operation failed; the message says whether its changes were rolled back.
            PkgerError: The plan did not run.
        """
        key = _idempotency_key(request)
        for attempt in range(1, ATTEMPTS + 1):
            # A repeated request finds the plan and the operation of each attempt again, by its request id.
            request_id = f"{key}-{attempt}" if key else ""
            written, plan = await self._planned(apply, org, request_id)
            if isinstance(plan, list):
                return plan
            try:
                run = await self._run(plan.header, apply, written, request.principal, request_id)
            except (PlanStale, StackMoved):
                if apply.plan_digest or attempt == ATTEMPTS:
                    raise
                continue
            except PkgerError:
                if not key:
                    await self._drop(plan.header.id)
                raise
            if run.is_contended and not apply.stack_id and attempt < ATTEMPTS:
                # Two applies without a stack ran at once. When the other one has ended, a new plan finds its stack.
                await asyncio.sleep(self._services.applier.times.pause * attempt)
                continue
            if not run.is_done:
                raise await self._runner.failure(run)
            fill_in_diffs(plan.diffs, run.ids)
            return _Done(plan, run.finished.stack_id)
        raise AssertionError("the last attempt returns or raises")

    async def _planned(
        self, apply: Apply, org: Organization, request_id: str = ""
    ) -> tuple[Mapping[str, str], JoinedPlan | list[object_pb2.Violation]]:
        """
        Make a plan.

        Returns:
            The credentials of the package, by the keys of the secrets that the plan has in their place; and the plan,
            or all violations of the package.

        Raises:
            PkgerError: The plan cannot be made.
        """
        request = planning_pb2.PlanStandalonePackageRequest(request=_plan_request(apply, org, request_id))
        secrets = dict[str, str]()

        async def parts() -> AsyncIterator[planner_pb2.CreatePlanResponse]:
            stub = PlanningServiceStub(self._services.planner.channel)
            async for message in self._services.planner.stream(stub.PlanStandalonePackage, request):
                secrets.update(message.secrets.values)
                if message.HasField("part"):
                    yield message.part

        try:
            return secrets, await joined(parts())
        except RequestInvalid as error:
            if error.metadata.get("field") != "options.skip":
                raise
            # Each action is valid by itself, but not with this package.
            raise Problem(
                Code.UNPROCESSABLE_ENTITY, f"actions: {error}", reason=error.reason, metadata=error.metadata
            ) from error

    async def _run(
        self, header: plan_pb2.Plan, apply: Apply, written: Mapping[str, str], author: str, request_id: str
    ) -> Run:
        applier = self._services.applier
        stub = ApplierServiceStub(applier.channel)
        request = applier_pb2.ApplyPlanRequest(
            plan_id=header.id,
            run_options=applier_pb2.RunOptions(
                expected_plan_digest=apply.plan_digest or header.digest, allow_missing=True, author=author
            ),
            # Planning and running are two requests to the services, so each needs a request id of its own.
            request_id=f"{request_id}-run" if request_id else self._runner.new_request_id(),
            secrets={**apply.secrets, **written},
        )
        return await run_to_end(applier, lambda: applier.stream(stub.ApplyPlan, request, seconds=math.inf))

    async def _drop(self, plan: str) -> None:
        """Delete a plan that will not run; if the deletion fails, the plan expires."""
        stub = StackServiceStub(self._services.stack.channel)
        try:
            await self._services.stack.call(stub.DeletePlan, stack_pb2.DeletePlanRequest(plan_id=plan))
        except PkgerError:
            return


def _plan_request(apply: Apply, org: Organization, request_id: str) -> planner_pb2.CreatePlanRequest:
    """
    The request to the planner.

    Raises:
        Problem: An environment value cannot be sent.
    """
    request = planner_pb2.CreatePlanRequest(
        validate_only=apply.is_dry,
        request_id=request_id,
        secret_keys=sorted(apply.secrets),
        options=apply.options,
        view=DOCUMENT,
    )
    if apply.stack_id:
        request.stack.id = apply.stack_id
    else:
        request.target.CopyFrom(target_to_pb(org.target))
    # A package needs at least one source. This one has no objects, so no answer mentions it.
    sources = list(map(_source, apply.templates)) or [parser_pb2.Source(text="[]", encoding=parser_pb2.ENCODING_JSON)]
    request.package.sources.extend(sources)
    try:
        request.package.env_json.update(env_texts(apply.env))
    except ValueError as error:
        raise Problem(Code.INVALID, f"envRefs: {error}") from error
    return request


def _source(template: Template) -> parser_pb2.Source:
    source = parser_pb2.Source(name=template.name, encoding=_ENCODINGS[template.encoding])
    if template.url:
        source.url = template.url
    else:
        source.text = template.text
        source.generated = template.is_generated
    return source


def _answer(plan: JoinedPlan, status: int, stack_id: str, org: Organization, new_keys: Collection[str] = ()) -> Answer:
    body = answer_json(plan, stack_id, org.id, is_applied=status == 201, hidden=new_keys)
    return Answer(status, body, warning_headers(warning_lines(plan.remarks)))


def _size(plan: JoinedPlan) -> int:
    return sum(map(len, plan.summaries))


def _refusal(violations: "list[object_pb2.Violation]") -> Answer:
    document = refused_document(violations)
    headers = {"X-Platform-Error-Code": str(Code.UNPROCESSABLE_ENTITY)}
    return Answer(422, orjson.dumps(document), headers)


def _other_plan(digest: str) -> Problem:
    message = f"planDigest: the plan has changed and has the digest {digest} now; review the plan and send its digest"
    return Problem(Code.CONFLICT, message)


def _idempotency_key(request: HttpRequest) -> str:
    """The request id for the Idempotency-Key of a request; empty if it has none."""
    key = request.headers.get("Idempotency-Key", "")
    # The principal is part of the id: two clients may use the same key.
    text = f"{request.principal}\n{key}".encode(errors="surrogateescape")
    return hashlib.sha256(text).hexdigest()[:32] if key else ""
