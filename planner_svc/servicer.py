"""PlannerService on the wire: translates requests and responses; the rules are in the other modules."""

from collections.abc import AsyncIterator, Mapping
from functools import partial

from pkger.journal.v1 import journal_pb2, planning_pb2
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceServicer, add_PlanningServiceServicer_to_server
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.package_pb2_grpc import add_PackageServiceServicer_to_server
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceServicer, add_PlannerServiceServicer_to_server

from planner_svc.create_plan import written_secrets
from planner_svc.drift.detect import detect
from planner_svc.drift.inputs import DriftReader
from planner_svc.export.inputs import ExportReader
from planner_svc.export.response import make_export
from planner_svc.export.stored_export import store_export
from planner_svc.imports.response import find_imports, list_live
from planner_svc.inputs import PlanInputs
from planner_svc.package_servicer import PackageServicer
from planner_svc.package_stack.desired_packages import PackageStackInputs
from planner_svc.response import PlanResponse, PlanUse, make_answer
from planner_svc.store_plan import PlanStore
from services.core.model import DEFAULT_PLATFORM
from services.rpc.convert.checks import check_to_pb
from services.rpc.convert.objects import org_to_pb
from services.rpc.gc_pause import gc_paused
from services.rpc.plan_parts import checked_view
from services.rpc.request_digest import content_digest
from services.rpc.server import Register

SERVICES = (
    "pkger.planner.v1.PlannerService",
    "pkger.planner.v1.PackageService",
    "pkger.journal.v1.PlanningService",
)


class PlannerServicer(PlannerServiceServicer):
    """Streams plans, exports and drift reports in parts."""

    def __init__(
        self,
        reader: PlanInputs,
        packages: PackageStackInputs,
        plans: PlanStore,
        exports: ExportReader,
        drift: DriftReader,
        limit: int,
    ) -> None:
        self._reader = reader
        self._packages = packages
        self._plans = plans
        self._exports = exports
        self._drift = drift
        self._limit = limit

    async def CreatePlan(
        self, request: planner_pb2.CreatePlanRequest, context: object
    ) -> AsyncIterator[planner_pb2.CreatePlanResponse]:
        _, messages = await _created(request, self._reader, self._packages, self._plans, self._limit)
        async for message in messages:
            yield message

    async def ExportPackage(
        self, request: planner_pb2.ExportPackageRequest, context: object
    ) -> AsyncIterator[planner_pb2.ExportPackageResponse]:
        for message in await make_export(request, self._exports):
            yield message

    async def DetectDrift(
        self, request: planner_pb2.DetectDriftRequest, context: object
    ) -> AsyncIterator[planner_pb2.DetectDriftResponse]:
        detection = await detect(request, self._drift, self._reader)
        is_stored = not request.keys and await self._drift.store(detection.facts.stack, detection.counts)
        for message in detection.messages(is_stored=is_stored):
            yield message

    async def PlanImport(
        self, request: planner_pb2.PlanImportRequest, context: object
    ) -> AsyncIterator[planner_pb2.PlanImportResponse]:
        for message in await find_imports(request, self._reader):
            yield message

    async def ListLiveResources(
        self, request: planner_pb2.ListLiveResourcesRequest, context: object
    ) -> AsyncIterator[planner_pb2.ListLiveResourcesResponse]:
        for message in await list_live(request, self._reader):
            yield message

    async def ListPlatforms(
        self, request: planner_pb2.ListPlatformsRequest, context: object
    ) -> planner_pb2.ListPlatformsResponse:
        return planner_pb2.ListPlatformsResponse(
            platforms=[
                planner_pb2.PlatformListing(name=name, orgs=map(org_to_pb, orgs), problem=problem)
                for name, orgs, problem in await self._reader.platforms(request.platform)
            ]
        )

    async def CheckPlatform(
        self, request: planner_pb2.CheckPlatformRequest, context: object
    ) -> planner_pb2.CheckPlatformResponse:
        name = request.platform or DEFAULT_PLATFORM
        platform_check = await self._reader.check(name, request.org)
        return planner_pb2.CheckPlatformResponse(name=name, check=check_to_pb(platform_check))


class PlanningServicer(PlanningServiceServicer):
    """Makes plans for operations and standalone packages, and stores exports."""

    def __init__(
        self, reader: PlanInputs, packages: PackageStackInputs, plans: PlanStore, exports: ExportReader, limit: int
    ) -> None:
        self._reader = reader
        self._packages = packages
        self._plans = plans
        self._exports = exports
        self._limit = limit

    async def PlanOperation(
        self, request: planning_pb2.PlanOperationRequest, context: object
    ) -> AsyncIterator[planning_pb2.PlanOperationResponse]:
        with gc_paused():
            answer = await make_answer(
                request.request, PlanUse.OPERATION, (), self._reader, self._packages, self._limit, request.stack
            )
        if answer.new_plan:
            await self._plans.keep_for(answer.new_plan, answer.attachments, request.operation_id)
        for message in answer.messages():
            has_header = message.part.HasField("header")
            baselines_digest = answer.new_plan.baselines_digest if answer.new_plan and has_header else ""
            yield planning_pb2.PlanOperationResponse(answer=message, baselines_digest=baselines_digest)

    async def PlanStandalonePackage(
        self, request: planning_pb2.PlanStandalonePackageRequest, context: object
    ) -> AsyncIterator[planning_pb2.PlanStandalonePackageResponse]:
        secrets, messages = await _created(
            request.request, self._reader, self._packages, self._plans, self._limit, is_standalone=True
        )
        if secrets:
            yield planning_pb2.PlanStandalonePackageResponse(secrets=planning_pb2.WrittenSecrets(values=secrets))
        async for message in messages:
            yield planning_pb2.PlanStandalonePackageResponse(part=message)

    async def StoreExport(
        self, request: planning_pb2.StoreExportRequest, context: object
    ) -> planning_pb2.StoreExportResponse:
        return await store_export(request, self._exports, self._plans)


def registrations(
    reader: PlanInputs,
    plans: PlanStore,
    exports: ExportReader,
    drift: DriftReader,
    packages: PackageServicer,
    package_stacks: PackageStackInputs,
    limit: int,
) -> tuple[Register, ...]:
    """Functions that add the planner to a server; *limit* is the largest message, in bytes, between the services."""
    return (
        partial(add_PackageServiceServicer_to_server, packages),
        partial(
            add_PlannerServiceServicer_to_server, PlannerServicer(reader, package_stacks, plans, exports, drift, limit)
        ),
        partial(add_PlanningServiceServicer_to_server, PlanningServicer(reader, package_stacks, plans, exports, limit)),
    )


async def _created(
    request: planner_pb2.CreatePlanRequest,
    reader: PlanInputs,
    packages: PackageStackInputs,
    plans: PlanStore,
    limit: int,
    *,
    is_standalone: bool = False,
) -> tuple[Mapping[str, str], AsyncIterator[planner_pb2.CreatePlanResponse]]:
    """The credentials that are planned as secrets, and the messages of a new plan or of one of an earlier call."""
    view, key = checked_view(request.view), _request_key(request)
    plan_id = await plans.of_request(key) if key else ""
    if plan_id:
        secrets = await written_secrets(request, reader) if is_standalone else {}
    else:
        use = PlanUse.DRY_RUN if request.validate_only else PlanUse.LATER_APPLY
        with gc_paused():
            answer = await make_answer(request, use, view, reader, packages, limit, is_standalone=is_standalone)
        secrets = answer.secrets
        if answer.new_plan and not request.validate_only:
            plan_id = await plans.keep(answer.new_plan, answer.attachments, key)
        if not plan_id:
            return secrets, _messages(answer)
    return secrets, (planner_pb2.CreatePlanResponse(part=part) async for part in plans.parts(plan_id, view))


async def _messages(answer: PlanResponse) -> AsyncIterator[planner_pb2.CreatePlanResponse]:
    for message in answer.messages():
        yield message


def _request_key(request: planner_pb2.CreatePlanRequest) -> journal_pb2.RequestKey | None:
    """The key of a request that makes one plan however often it is sent; None: it may make any number."""
    if request.validate_only or not request.request_id:
        return None
    return journal_pb2.RequestKey(id=request.request_id, digest=content_digest(request))
