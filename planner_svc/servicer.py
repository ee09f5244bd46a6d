"""PlannerService on the wire. Holds the clients; decides nothing itself."""

import asyncio
from functools import partial
from typing import Any

import grpc
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceServicer, add_PlannerServiceServicer_to_server

from planner_svc.credentials import refuse_written_secrets
from planner_svc.matching import kinds_to_list, match, owner_questions, refuse_emptying, refuse_owned
from planner_svc.planning import Remarks, make_plan
from planner_svc.reading import Reader
from planner_svc.secrets import refuse_unusable_keys, secrets_of
from planner_svc.skipping import idle_skips, skipped_keys
from planner_svc.storing import PlanStore
from services.core.errors import RequestInvalid
from services.core.model import Desired, Key, Package
from services.rpc.convert.objects import credential_from_pb, object_from_pb, violation_from_pb
from services.rpc.convert.plans import plan_fields
from services.rpc.parsing import Parsed
from services.rpc.requests import content_digest
from services.rpc.server import Register

SERVICE = "pkger.planner.v1.PlannerService"


class PlannerServicer(PlannerServiceServicer):
    """Gathers what a plan is made from, calls ``make_plan`` and has the plan kept."""

    def __init__(self, reader: Reader, plans: PlanStore) -> None:
        self._reader = reader
        self._plans = plans

    async def CreatePlan(
        self, request: planner_pb2.CreatePlanRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> planner_pb2.CreatePlanResponse:
        if not request.HasField("desired"):
            raise RequestInvalid("desired", "say what is wanted: a package, or destroy")
        request_id = "" if request.validate_only else request.request_id
        content = content_digest(request) if request_id else ""
        if request_id and (earlier := await self._plans.of_request(request_id, content)):
            return planner_pb2.CreatePlanResponse(plan=earlier)
        # The parser is at work for most of the time that a plan takes: enough to read what is there.
        reading = asyncio.create_task(self._reader.known(request))
        try:
            parsed = await self._reader.package(request.package) if request.HasField("package") else None
            if parsed and parsed.violations:
                invalid = object_pb2.InvalidPackage(violations=parsed.violations)
                return planner_pb2.CreatePlanResponse(invalid_package=invalid)
            known = await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        stack, traits = known.stack, known.platform
        skips = [Key(skip.kind, skip.name) for skip in request.skip]
        desired = Desired(
            package=_package(parsed) if parsed else Package(()),
            skip=skipped_keys(skips),
            is_end=request.HasField("destroy"),
            secret_keys=frozenset(request.secret_keys),
            allow_replace=request.allow_replace,
        )
        refuse_written_secrets(desired, traits, map(credential_from_pb, parsed.credentials if parsed else ()))
        refuse_unusable_keys(desired, traits)
        remarks = Remarks()
        if parsed:
            warnings = (*map(_told, parsed.warnings), *idle_skips(skips, desired.package, stack))
            referred = secrets_of(desired, traits, parsed.missing_secrets)
            remarks = Remarks(tuple(parsed.missing_env_refs), referred, warnings)
        asks = traits.holds_secrets and (remarks.secret_refs or desired.secret_keys)
        held = await self._reader.secret_keys(stack.target) if asks else frozenset[str]()
        live = await self._reader.live(known, kinds_to_list(desired, stack, traits))
        matching = match(desired, stack, live, traits)
        if not request.allow_empty:
            refuse_emptying(desired, matching, stack)
        refuse_owned(matching, await self._reader.owners(stack.target, owner_questions(matching)), stack)
        # A large package is worth giving up before its plan is made.
        del parsed
        # In a thread: a large plan takes a moment, in which other calls are answered.
        answer = await asyncio.to_thread(
            lambda: planner_pb2.CreatePlanResponse(
                plan=plan_fields(make_plan(desired, stack, matching, traits, remarks, held))
            )
        )
        if not request.validate_only:
            answer.plan.CopyFrom(await self._plans.keep(answer.plan, request_id, content))
        return answer


def register(reader: Reader, plans: PlanStore) -> Register:
    """What a server needs to serve the planner."""
    return partial(add_PlannerServiceServicer_to_server, PlannerServicer(reader, plans))


def _package(parsed: Parsed) -> Package:
    return Package(tuple(map(object_from_pb, parsed.objects)), tuple(parsed.header.sources))


def _told(warning: object_pb2.Violation) -> str:
    found = violation_from_pb(warning)
    return f"{found.location}: {found.path}: {found.reason}"
