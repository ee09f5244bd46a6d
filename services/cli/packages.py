"""``pkger plan``, ``pkger apply``, ``pkger stacks uninstall`` and ``delete``: plan, show, ask, run, tell."""

import asyncio
import contextlib
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from rich.text import Text

from services.cli.errors import Failed, InvalidPackageError, text_of, told_plainly
from services.cli.interrupts import Interrupts
from services.cli.plan_text import done_sum, print_plan
from services.cli.plans import SHOWN, WHOLE, stored
from services.cli.progress import Progress, cancel_effect
from services.cli.session import Session, session
from services.cli.shares import shares_of
from services.cli.show import (
    console,
    moment,
    plan_document,
    print_json,
    print_stack,
)
from services.cli.sources import read_sources
from services.cli.stack_records import ref_of
from services.core.errors import PkgerError, StackNotFound
from services.core.model import Target
from services.rpc.convert.objects import target_from_pb, violation_from_pb
from services.rpc.plan_parts import JoinedPlan, joined
from services.rpc.readiness import refuse_missing_values
from services.rpc.resources import read_stack
from services.settings import Bounds, load

PLANNING = ("parser", "planner", "stack", "platform")
APPLYING = (*PLANNING, "applier")
READING = ("stack",)

Answer = (
    applier_pb2.ApplyResponse
    | applier_pb2.ApplyPlanResponse
    | applier_pb2.UninstallStackResponse
    | applier_pb2.RollbackStackResponse
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    What the user asks for.

    Attributes:
        files: Package files and addresses, and folders if *recursive*; behind them come the URLs of the stack.
        stack: Name of the stack; empty for none.
        org: Organisation; empty for the default one.
        platform: Platform; empty for the default one.
        env: Environment values by key.
        recursive: Whether a folder stands for the package files in it and below.
        skip: What to leave out: ``KIND`` or ``KIND:NAME``.
        allow_empty: Whether a package without objects may take all from the stack.
        allow_missing: Whether to apply although values are missing.
        allow_replace: Whether what no stack owns may be deleted, to be created anew.
        secrets: Values of secrets to write by key; not shown. For a plan, the values do not count.
        then: What becomes of the stack after an uninstall; None: a package is applied.
        full: Whether all of the plan is shown, uncut.
        revision: The revision of the stack to go back to; 0: none.
        author: Who asks for it; empty: nobody is told.
    """

    files: Sequence[str]
    stack: str
    org: str
    env: Mapping[str, str]
    platform: str = ""
    recursive: bool = False
    skip: Sequence[str] = ()
    allow_empty: bool = False
    allow_missing: bool = False
    allow_replace: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    then: plan_pb2.AfterUninstall.ValueType | None = None
    full: bool = False
    revision: int = 0
    author: str = ""

    async def request(self, bounds: Bounds, store: bool) -> planner_pb2.CreatePlanRequest:
        """
        The request for the plan.

        Args:
            bounds: What the evaluation of Jsonnet may take.
            store: Whether the plan is kept.

        Raises:
            Failed: A file cannot be read, or an object to skip has no name.
            PkgerError: A Jsonnet program cannot be evaluated.
        """
        request = planner_pb2.CreatePlanRequest(
            validate_only=not store,
            target=object_pb2.Target(platform=self.platform, org=self.org),
            secret_keys=sorted(self.secrets),
            allow_empty=self.allow_empty,
            allow_replace=self.allow_replace,
        )
        for skipped in self.skip:
            kind, colon, name = skipped.partition(":")
            if colon and not name:
                raise Failed(f"--skip {skipped} names no object; write --skip {kind} to leave out all of the kind")
            request.skip.add(kind=kind, name=name)
        if self.stack:
            request.stack.name = self.stack
        if self.revision:
            request.revision = self.revision
        elif self.then is None:
            request.package.sources.extend(await read_sources(self.files, self.recursive, bounds))
            for key, value in self.env.items():
                request.package.env[key].string_value = value
        else:
            request.destroy.then = self.then
        return request


async def plan(wanted: Wanted, environ: Mapping[str, str], output: str, save: bool) -> None:
    """
    Show what an apply would do, and *save* the plan to be applied later.

    Raises:
        Failed: There is no plan; everything that is wrong is told.
    """
    with Interrupts() as interrupts, told_plainly():
        request = await interrupts.or_stop(wanted.request(load(environ).bounds, store=save))
        request.view.extend(WHOLE if output == "json" else SHOWN)
        async with session(PLANNING, environ, wanted.platform) as services:
            await interrupts.or_stop(_find_stack(services, request))
            made = await interrupts.or_stop(_make_plan(services, request))
    if output == "json":
        print_json(console(), plan_document(made))
        return
    print_plan(console(), made, wanted.full)
    if save:
        secrets = "".join(f" --secret {shlex.quote(key)}" for key in sorted(wanted.secrets))
        header = made.header
        way_on = (
            f"`pkger apply --plan {header.name}{secrets}` runs exactly this plan, until {moment(header.expire_time)}"
        )
        console().print(Text(f"Saved: {way_on}."))


async def apply(wanted: Wanted, environ: Mapping[str, str], assume_yes: bool) -> None:
    """
    Apply a package, or uninstall a stack: show the plan, ask for it at a terminal, run that plan and no other.

    Raises:
        Failed: Nothing was done, or what was done was undone.
    """
    # Where nobody is asked, the plan to show is the one that runs: made once.
    asks = not assume_yes and sys.stdin.isatty()
    with Interrupts() as interrupts, told_plainly():
        request = await interrupts.or_stop(wanted.request(load(environ).bounds, store=asks))
        async with session(APPLYING, environ, wanted.platform) as services:
            await interrupts.or_stop(_find_stack(services, request))
            if asks:
                request.view.extend(SHOWN)
                made = await interrupts.or_stop(_make_plan(services, request))
                await _agree(made, interrupts, wanted.allow_missing, wanted.full)
                answers = _run(services, made, wanted.allow_missing, wanted.secrets, wanted.author)
                await _finish(services, interrupts, answers, made)
            else:
                await _finish(services, interrupts, _start(services, request, wanted), full=wanted.full)


async def apply_stored(
    name: str,
    environ: Mapping[str, str],
    assume_yes: bool,
    allow_missing: bool,
    secrets: Mapping[str, str],
    full: bool = False,
    author: str = "",
) -> None:
    """
    Apply a stored plan with the *secrets* that it writes: show it, ask for it at a terminal, run it.

    Raises:
        Failed: Nothing was done, or what was done was undone.
    """
    with Interrupts() as interrupts, told_plainly():
        # Which driver the services of one call need stands in the plan.
        async with session(READING, environ) as services:
            made = await interrupts.or_stop(stored(services, name, SHOWN))
        async with session(APPLYING, environ, made.header.target.platform) as services:
            if assume_yes or not sys.stdin.isatty():
                print_plan(console(), made, full)
            else:
                await _agree(made, interrupts, allow_missing, full)
            await _finish(services, interrupts, _run(services, made, allow_missing, secrets, author), made)


async def _finish(
    services: Session,
    interrupts: Interrupts,
    answers: AsyncIterator[Answer],
    shown: JoinedPlan | None = None,
    full: bool = False,
) -> None:
    """
    Show how an operation goes and what it left behind; and its plan, unless that is *shown* already.

    Raises:
        Failed: It did not do all.
    """
    out = console()
    made, progress, finished = await _follow(answers, services, interrupts, shown, full)
    has_succeeded = finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED
    if has_succeeded:
        out.print(f"Done: {done_sum(finished)}.")
    if finished.leftover_count or not has_succeeded:
        end = progress.end(finished)
        out.print(Text(end, "bold red"))
        raise Failed(f"{progress.cause(finished)}; {end}")
    if made.header.kind == plan_pb2.OPERATION_KIND_UNINSTALL:
        end = "is kept, and owns nothing" if finished.stack_id else "is gone"
        out.print(Text(f"stack {made.header.stack_name or made.header.stack_id} {end}"))
    elif finished.stack_id:
        ref = object_pb2.StackRef(id=finished.stack_id)
        stack, resources = await read_stack(services.stack, Target(), ref)
        print_stack(out, stack, resources, await shares_of(services.stack, stack, resources))


async def _agree(made: JoinedPlan, interrupts: Interrupts, allow_missing: bool, full: bool) -> None:
    """
    Show a plan and ask for it.

    Raises:
        Failed: The answer is no.
        ValuesMissing: The answer would not help.
    """
    print_plan(console(), made, full)
    if not allow_missing:
        refuse_missing_values(made.remarks)
    if (made.steps or made.header.kind == plan_pb2.OPERATION_KIND_UNINSTALL) and not await interrupts.ask(
        "Apply this plan?"
    ):
        raise Failed("not applied; nothing was written")


async def _find_stack(services: Session, request: planner_pb2.CreatePlanRequest) -> None:
    """Name the stack of *request* by its id, if that is what the user wrote."""
    if request.stack.name:
        ref = await ref_of(services.stack, target_from_pb(request.target), request.stack.name)
        request.stack.CopyFrom(ref)


async def _make_plan(services: Session, request: planner_pb2.CreatePlanRequest) -> JoinedPlan:
    stub = PlannerServiceStub(services.planner.channel)
    answers = services.planner.stream(stub.CreatePlan, request)
    made = await joined(answers)
    if not isinstance(made, JoinedPlan):
        raise InvalidPackageError(list(map(violation_from_pb, made)))
    return made


def _run(
    services: Session, made: JoinedPlan, allow_missing: bool, secrets: Mapping[str, str], author: str
) -> AsyncIterator[Answer]:
    """Apply the stored plan *made*, and no other of that name."""
    stub = ApplierServiceStub(services.applier.channel)
    request = applier_pb2.ApplyPlanRequest(
        plan=made.header.name,
        digest=made.header.digest,
        secrets=secrets,
        allow_missing=allow_missing,
        author=author,
    )
    return services.applier.stream(stub.ApplyPlan, request, seconds=None)


def _start(services: Session, request: planner_pb2.CreatePlanRequest, wanted: Wanted) -> AsyncIterator[Answer]:
    """Apply what *request* asks a plan for."""
    stub = ApplierServiceStub(services.applier.channel)
    if request.HasField("destroy"):
        then = request.destroy.then
        uninstall = applier_pb2.UninstallStackRequest(
            target=request.target, stack=request.stack, then=then, author=wanted.author
        )
        return _of_stack(services.applier.stream(stub.UninstallStack, uninstall, seconds=None), wanted.stack)
    if request.HasField("revision"):
        back = applier_pb2.RollbackStackRequest(
            target=request.target,
            stack=request.stack,
            revision=request.revision,
            skip=request.skip,
            allow_missing=wanted.allow_missing,
            allow_empty=wanted.allow_empty,
            allow_replace=wanted.allow_replace,
            author=wanted.author,
        )
        return services.applier.stream(stub.RollbackStack, back, seconds=None)
    wish = applier_pb2.ApplyRequest(
        target=request.target,
        package=request.package,
        skip=request.skip,
        secrets=wanted.secrets,
        allow_missing=wanted.allow_missing,
        allow_empty=wanted.allow_empty,
        allow_replace=wanted.allow_replace,
        author=wanted.author,
    )
    if request.HasField("stack"):
        wish.stack.CopyFrom(request.stack)
    return services.applier.stream(stub.Apply, wish, seconds=None)


async def _of_stack(
    answers: AsyncIterator[applier_pb2.UninstallStackResponse], name: str
) -> AsyncIterator[applier_pb2.UninstallStackResponse]:
    """
    *answers* about a stack.

    Raises:
        StackNotFound: There are none: it was to be deleted, and is not there.
    """
    is_there = False
    async for answer in answers:
        is_there = True
        yield answer
    if not is_there:
        raise StackNotFound(name)


async def _follow(
    answers: AsyncIterator[Answer], services: Session, interrupts: Interrupts, shown: JoinedPlan | None, full: bool
) -> tuple[JoinedPlan, Progress, operation_pb2.Finished]:
    """
    Show progress, and the plan if it is not *shown* yet, to the end.

    An interrupt makes the operation turn back, and the end is still awaited.
    """
    progress, operation, made = Progress(), "", shown or JoinedPlan()
    violations: list[object_pb2.Violation] = []
    cancelling: asyncio.Task[None] | None = None
    try:
        async for answer in answers:
            if isinstance(answer, applier_pb2.ApplyResponse) and answer.HasField("violations"):
                violations += answer.violations.violations
                continue
            event = answer.event
            progress.show(event)
            if event.HasField("accepted"):
                operation = event.operation
                cancelling = asyncio.create_task(_cancel_on_interrupt(services, interrupts, operation))
                if not shown:
                    made = await stored(services, event.accepted.plan, SHOWN)
                    print_plan(console(), made, full)
                progress.steps = made.steps
            elif event.HasField("finished"):
                return made, progress, event.finished
    except PkgerError as error:
        if not operation:
            raise
        way_on = f"`pkger operations watch {operation}` shows how it goes on"
        raise Failed(
            f"{text_of(error)}; the operation is not over: an applier will finish or undo it, {way_on}"
        ) from error
    finally:
        if cancelling:
            cancelling.cancel()
            await asyncio.gather(cancelling, return_exceptions=True)
    if violations:
        raise InvalidPackageError(list(map(violation_from_pb, violations)))
    raise Failed("the applier ended the stream before the operation was over; `pkger plan` shows where things are")


async def _cancel_on_interrupt(services: Session, interrupts: Interrupts, operation: str) -> None:
    await interrupts.event.wait()
    console().print("interrupted", style="bold red")
    stub = ApplierServiceStub(services.applier.channel)
    request = applier_pb2.CancelOperationRequest(operation=operation)
    # An operation that is over just now needs no cancelling.
    with contextlib.suppress(PkgerError):
        answer = await services.applier.call(stub.CancelOperation, request)
        told = f"the operation {cancel_effect(answer.effect, operation.rpartition('/')[2])}"
        console().print(Text(told, "bold red"))
