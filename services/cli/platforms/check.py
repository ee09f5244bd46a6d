"""``pkger platforms check``: checks of platforms that write nothing."""

import asyncio
from collections.abc import Mapping, Sequence

from pkger.model.v1 import check_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from rich.console import Console
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.exit_codes import Exit
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.enum_words import word
from services.cli.output.escapes import one_line
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import PLANNING, Session, session
from services.rpc.message_json import document_of

_ASPECTS = {"org": "organization"}
"""Texts for aspects whose names in the contract are abbreviated."""

_STYLES = {"ok": "green", "wrong": "bold red", "unknown": "yellow"}


async def check(environ: Mapping[str, str], platform: str, org: str, output: str) -> Exit:
    """Check *platform*, and rights in *org*; empty: all platforms, and no organization."""
    with Interrupts() as interrupts, plain_errors():
        async with session(PLANNING, environ, platform or None) as services:
            answers = await interrupts.or_stop(_checks(services, platform, org))
    if output != "text":
        print_document([document_of(each) for each in answers], output)
    else:
        out = console()
        for each in answers:
            _print(out, each)
    is_wrong = any(
        finding.verdict == check_pb2.CHECK_VERDICT_WRONG for each in answers for finding in each.check.findings
    )
    return Exit.ERROR if is_wrong else Exit.DONE


async def _checks(services: Session, platform: str, org: str) -> Sequence[planner_pb2.CheckPlatformResponse]:
    stub, planner = PlannerServiceStub(services.planner.channel), services.planner
    names = [platform]
    if not platform:
        listed = await planner.call(stub.ListPlatforms, planner_pb2.ListPlatformsRequest())
        names = [each.name for each in listed.platforms]
    requests = (planner_pb2.CheckPlatformRequest(platform=name, org=org) for name in names)
    return await asyncio.gather(*(planner.call(stub.CheckPlatform, request) for request in requests))


def _print(out: Console, answer: planner_pb2.CheckPlatformResponse) -> None:
    product = " ".join(filter(None, (answer.check.platform, answer.check.version)))
    out.print(Text(one_line(f"Platform {answer.name}" + (f": {product}" if product else "")), "bold"))
    rows = [(_verdict(finding), _about(finding), finding.message) for finding in answer.check.findings]
    width = max((len(about) for _, about, _ in rows), default=0)
    for verdict, about, message in rows:
        line = Text("  ").append(f"{verdict:<7}", _STYLES.get(verdict, "")).append(f"  {about:<{width}}  ")
        out.print(line.append(one_line(message)), soft_wrap=True)


def _about(finding: check_pb2.CheckFinding) -> str:
    aspect = word(check_pb2.CheckAspect, "CHECK_ASPECT", finding.aspect)
    return one_line(" ".join(filter(None, (_ASPECTS.get(aspect, aspect), finding.subject))))


def _verdict(finding: check_pb2.CheckFinding) -> str:
    return word(check_pb2.CheckVerdict, "CHECK_VERDICT", finding.verdict)
