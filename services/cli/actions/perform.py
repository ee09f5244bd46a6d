"""``pkger perform`` and ``pkger actionsets create``: make an action set, ask for approval, follow it to its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
import orjson
from pkger.applier.v1 import action_pb2
from pkger.applier.v1.action_pb2_grpc import ActionServiceStub
from pkger.model.v1 import action_pb2 as model_pb2
from pkger.model.v1.definition_pb2 import Definition
from rich.text import Text

from services.actions.canonical import definition_text
from services.actions.definitions import ActionSet, DefinitionKind, SecretPlace
from services.cli.actions.action_set_text import print_action_set
from services.cli.actions.deletions import deletions_text
from services.cli.errors import CommandFailed, plain_errors
from services.cli.operations.follower import DataReport, EventReport, OperationFollower, TextReport
from services.cli.operations.progress import Progress
from services.cli.output.consoles import console, progress_console
from services.cli.output.documents import print_document
from services.cli.output.interaction import Interaction
from services.cli.output.status_line import StatusLine
from services.cli.packages.definition_files import read_definitions
from services.cli.packages.sources import STDIN
from services.cli.packages.violation_output import Findings, print_findings
from services.cli.plan.secrets import read_secrets
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import APPLYING, Session, outlive_command, session
from services.cli.process.terminal import Terminal
from services.rpc.convert.objects import violation_from_pb
from services.rpc.message_json import document_of
from services.settings import load
from services.system import MachineIds

_REQUEST_ID_BYTES = 16


def new_request_id() -> str:
    """An id for a request, so that sending it again has its effect once."""
    return MachineIds().token(_REQUEST_ID_BYTES)


@dataclass(frozen=True, slots=True)
class Performance:
    """
    What is performed, and how.

    Attributes:
        definitions: The action set, and definitions that take the place of stored ones for it.
        secrets: Values of the secrets that come with the request, by ``NAME.KEY``; not in ``repr``.
        pinned: Whether a successor runs the blueprint as its predecessor had it.
        dry_run: Whether the action set is only resolved and shown.
        detach: Whether the command ends once the action set exists.
        author: Author of the request.
        request_id: Id of the request.
    """

    definitions: Sequence[Definition]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    pinned: bool = False
    dry_run: bool = False
    detach: bool = False
    author: str = ""
    request_id: str = ""

    def request(self, validate_only: bool) -> action_pb2.CreateActionSetRequest:
        """The request for the action set."""
        return action_pb2.CreateActionSetRequest(
            definitions=self.definitions,
            secrets=self.secrets,
            pinned=self.pinned,
            validate_only=validate_only,
            author=self.author,
            request_id="" if validate_only else self.request_id,
        )


async def definitions_of(files: Sequence[str], environ: Mapping[str, str]) -> list[Definition] | None:
    """
    The definitions in files; None if they are invalid: the violations are printed.

    Raises:
        CommandFailed: A file cannot be read.
    """
    with Interrupts() as interrupts, plain_errors():
        return await interrupts.or_stop(read_definitions(files, environ))


def of_action_set(action_set: ActionSet) -> Definition:
    """An action set as a definition of a request."""
    return Definition(kind=DefinitionKind.ACTION_SET, name=action_set.name, json=definition_text(action_set))


def blueprint_of(definitions: Sequence[Definition], named: str, action: str) -> str:
    """
    The blueprint among *definitions* whose action is performed: the one that is *named*, else the only one.

    Raises:
        UsageError: There is none, or there are several and none is named.
    """
    blueprints = {
        each.name: orjson.loads(each.json)["spec"]["actions"]
        for each in definitions
        if each.kind == DefinitionKind.BLUEPRINT
    }
    if any(each.kind == DefinitionKind.ACTION_SET for each in definitions):
        raise click.UsageError("the files have an action set; `pkger actionsets create` performs that of a file")
    having = [name for name, actions in blueprints.items() if action in actions]
    if named:
        return named
    if len(blueprints) == 1 or len(having) == 1:
        return (having or list(blueprints))[0]
    if not blueprints:
        raise click.UsageError("the files have no blueprint; name a stored one with --blueprint")
    raise click.UsageError(f"the files have {len(blueprints)} blueprints: name one with --blueprint")


def secrets_of_document(document: Mapping[str, Any]) -> list[str]:
    """The secrets of an action set whose values come with the request, as ``NAME.KEY``, each once, sorted."""
    spec = document["spec"]
    runs = [*spec.get("actions", ()), *([spec["overrides"]] if "overrides" in spec else [])]
    return sorted(
        {
            f"{name}.{key}"
            for run in runs
            for name, places in run.get("secrets", {}).items()
            for key, place in places.items()
            if SecretPlace.REQUEST in place
        }
    )


def typed_secrets(keys: Sequence[str], files: Sequence[str]) -> dict[str, str]:
    """
    The values of secrets that come with the request: asked for at a terminal, else a line of standard input each.

    Raises:
        UsageError: Standard input has a definition.
        CommandFailed: A value is empty, or no text.
    """
    if keys and STDIN in files:
        raise click.UsageError(f"--secret {keys[0]}: standard input has the definitions; name a file with -f instead")
    return read_secrets(keys, files)


async def perform(performance: Performance, environ: Mapping[str, str], interaction: Interaction) -> int:
    """
    Make an action set, and follow it to its end.

    Returns:
        The exit status.

    Raises:
        CommandFailed: It was not made, or is not complete in the end.
    """
    async with StatusLine(quiet=interaction.quiet) as status:
        with Interrupts() as interrupts, plain_errors(), Terminal.opened() as terminal:
            if performance.detach and not outlive_command(load(environ), environ, APPLYING):
                raise CommandFailed(
                    "--detach: no services run that could go on with the action set; start them with `pkger up`, or"
                    " leave --detach out"
                )
            async with session(APPLYING, environ) as services:
                run = _Run(services, interrupts, status, interaction)
                if performance.dry_run or not interaction.yes:
                    resolved = await run.create(performance.request(validate_only=True))
                    if resolved is None:
                        return 1
                    if performance.dry_run:
                        _show_resolved(resolved, interaction.output)
                        return 0
                    await _approve(resolved, terminal, interrupts)
                created = await run.create(performance.request(validate_only=False))
                if created is None:
                    return 1
                if performance.detach:
                    _show_created(created, interaction.output)
                    return 0
                await run.follow(created)
    return 0


async def _approve(resolved: model_pb2.ActionSet, terminal: Terminal | None, interrupts: Interrupts) -> None:
    """
    Ask for approval if an action set may delete something.

    Raises:
        CommandFailed: The user refuses, or there is no terminal.
    """
    if not (text := deletions_text(resolved)):
        return
    if not terminal:
        raise CommandFailed(
            f"the action set {text}, and there is no terminal to ask at; nothing was done."
            " --yes performs it without asking"
        )
    if not await terminal.confirm(f"The action set {text}.\nPerform it?", interrupts):
        raise CommandFailed("not performed; nothing was done")


def _show_resolved(resolved: model_pb2.ActionSet, output: str) -> None:
    if output != "text":
        print_document(document_of(resolved), output)
        return
    print_action_set(console(), resolved)
    console().print(Text("Not performed: this is a dry run.", "bold"))


def _show_created(created: model_pb2.ActionSet, output: str) -> None:
    if output != "text":
        print_document(document_of(created), output)
        return
    hint = f"`pkger actionsets watch {created.name}` follows it"
    console().print(Text(f"action set {created.name} (operation {created.operation_id}) runs; {hint}"))


class _Run:
    """Makes and follows an action set."""

    def __init__(self, services: Session, interrupts: Interrupts, status: StatusLine, interaction: Interaction) -> None:
        self._services, self._interrupts, self._status, self._interaction = services, interrupts, status, interaction

    async def create(self, request: action_pb2.CreateActionSetRequest) -> model_pb2.ActionSet | None:
        """
        The action set of *request*; None: it breaks rules, and the violations are printed.

        Raises:
            PkgerError: It is refused.
        """
        stub = ActionServiceStub(self._services.applier.channel)
        call = self._services.applier.call(stub.CreateActionSet, request)
        message = "interrupted; if the action set was made, `pkger actionsets list` lists it"
        if request.validate_only:
            message = "interrupted; nothing was done"
        answer = await self._interrupts.or_stop(call, message)
        if answer.HasField("action_set"):
            return answer.action_set
        violations = tuple(map(violation_from_pb, answer.violations.violations))
        print_findings(console(), Findings(violations, are_on_definitions=True), {})
        return None

    async def follow(self, created: model_pb2.ActionSet) -> None:
        """
        Follow an action set to its end.

        Raises:
            CommandFailed: It is not complete in the end.
        """
        progress = Progress()
        progress.actions.name = created.name
        report: EventReport = (
            TextReport(progress, self._status, self._interaction.full)
            if self._interaction.output == "text"
            else DataReport(self._interaction.output)
        )
        following = OperationFollower(self._services, self._interrupts, self._status, report, progress)
        self._status.show(progress.summary, "the applier")
        left = f"interrupted again; the action set goes on: `pkger actionsets watch {created.name}` follows it"
        finished = await following.run_actions(created.operation_id, left)
        self._status.hide()
        progress.actions.refuse_failure(finished)
        if self._interaction.output == "text":
            hint = f"`pkger actionsets show {created.name}` shows it"
            progress_console().print(Text(f"action set {created.name} is complete; {hint}"))
