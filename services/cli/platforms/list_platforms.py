"""``pkger platforms list``: the platforms of the planner."""

from collections.abc import Mapping

from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.cli.errors import plain_errors
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import PLANNING, session
from services.rpc.message_json import document_of


async def list_all(environ: Mapping[str, str], output: str) -> None:
    """Print all platforms with their organizations."""
    with Interrupts() as interrupts, plain_errors():
        async with session(PLANNING, environ) as services:
            stub = PlannerServiceStub(services.planner.channel)
            request = services.planner.call(stub.ListPlatforms, planner_pb2.ListPlatformsRequest())
            answer = await interrupts.or_stop(request)
    if output != "text":
        print_document([document_of(platform) for platform in answer.platforms], output)
        return
    rows = []
    for platform in answer.platforms:
        rows += [(platform.name, org.id, org.name if org.name != org.id else "") for org in platform.orgs]
        rows += [] if platform.orgs else [(platform.name, "", platform.problem or "(holds nothing)")]
    print_table(console(), ("PLATFORM", "ORG", "NAME"), rows)
