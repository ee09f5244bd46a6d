"""``pkger resources``: the resources of a platform, with their owners."""

from collections.abc import Mapping, Sequence

from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.cli.errors import plain_errors
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import PLANNING, Session, session
from services.rpc.message_json import document_of


async def list_all(target: object_pb2.Target, kinds: Sequence[str], environ: Mapping[str, str], output: str) -> None:
    """
    Print the resources of *kinds*, without kinds all of the target, in the order of the planner.

    Raises:
        CommandFailed: They cannot be listed, or a word is no kind.
    """
    request = planner_pb2.ListLiveResourcesRequest(target=target, kinds=kinds)
    with Interrupts() as interrupts, plain_errors():
        async with session(PLANNING, environ, target.platform) as services:
            resources = await interrupts.or_stop(_listed(services, request))
    if output != "text":
        print_document([document_of(each) for each in resources], output)
        return
    rows = [
        (
            each.resource.kind,
            each.resource.id,
            each.display_name,
            each.owner.stack_name or each.owner.stack_id,
            each.owner.object_name,
        )
        for each in resources
    ]
    print_table(console(), ("KIND", "ID", "NAME", "STACK", "OBJECT"), rows)


async def _listed(services: Session, request: planner_pb2.ListLiveResourcesRequest) -> list[planner_pb2.LiveResource]:
    stub = PlannerServiceStub(services.planner.channel)
    answers = services.planner.stream(stub.ListLiveResources, request)
    return [each async for answer in answers for each in answer.resources]
