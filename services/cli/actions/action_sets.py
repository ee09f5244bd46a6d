"""``pkger actionsets``: list, show, watch, cancel and delete action sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pkger.applier.v1 import action_pb2, applier_pb2
from pkger.applier.v1.action_pb2_grpc import ActionServiceStub
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import action_pb2 as model_pb2
from pkger.model.v1 import object_pb2
from rich.text import Text

from services.cli.actions.action_set_text import print_action_set, print_action_sets, state_word
from services.cli.errors import CommandFailed, plain_errors
from services.cli.operations.operations import watch_one
from services.cli.operations.progress import cancel_effect
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.facts import LARGEST_PAGE, LISTED, print_more
from services.cli.output.interaction import Interaction
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import APPLYING, Session, session
from services.core.errors import OperationNotFound
from services.rpc.message_json import document_of
from services.rpc.paging import first_items

STATES = {state_word(number): number for number in model_pb2.ActionSetState.values() if number}
"""The states of action sets, by their texts."""


@dataclass(frozen=True, slots=True)
class ActionSetFilter:
    """
    Which action sets are listed.

    Attributes:
        stack: Name of a stack that is among their objects; empty: any.
        place: Platform and organization of that stack; an empty one is the default.
        blueprint: A blueprint of their actions; empty: any.
        states: Keys of ``STATES``; empty: any.
        predecessor: What they were made from; empty: anything.
        labels: Labels that they have.
    """

    stack: str = ""
    place: tuple[str, str] = ("", "")
    blueprint: str = ""
    states: Sequence[str] = ()
    predecessor: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def request(self) -> action_pb2.ListActionSetsRequest:
        """The request for the first page."""
        platform, org = self.place
        target = object_pb2.Target(platform=platform, org=org)
        return action_pb2.ListActionSetsRequest(
            stack=object_pb2.StackRef(target=target, name=self.stack) if self.stack else None,
            blueprint=self.blueprint,
            states=[STATES[each] for each in self.states],
            predecessor=self.predecessor,
            labels=self.labels,
        )


async def list_all(chosen: ActionSetFilter, environ: Mapping[str, str], output: str, limit: int | None) -> None:
    """Print the newest action sets that pass a filter; at most *limit* of them, None: ``LISTED``."""
    listed, request = limit or LISTED, chosen.request()
    request.page_size = min(listed, LARGEST_PAGE)
    with Interrupts() as interrupts, plain_errors():
        async with session(APPLYING, environ) as services:
            stub = ActionServiceStub(services.applier.channel)
            listing = first_items(services.applier, stub.ListActionSets, request, lambda page: page.action_sets, listed)
            action_sets, has_more = await interrupts.or_stop(listing)
    if output == "text":
        print_action_sets(console(), action_sets)
    else:
        print_document([document_of(each) for each in action_sets], output)
    print_more(has_more)


async def show(name: str, environ: Mapping[str, str], output: str) -> None:
    """
    Print an action set with its phases and artifacts.

    Raises:
        CommandFailed: There is none of that name.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(APPLYING, environ) as services:
            action_set = await interrupts.or_stop(_read(services, name))
    if output == "text":
        print_action_set(console(), action_set)
    else:
        print_document(document_of(action_set), output)


async def follow(name: str, environ: Mapping[str, str], interaction: Interaction) -> None:
    """
    Print the events of an action set, from the first to the last.

    Raises:
        CommandFailed: There is none of that name, or it is not complete in the end.
    """
    left = (
        f"interrupted; the action set goes on: `pkger actionsets watch {name}` follows it,"
        f" `pkger actionsets cancel {name}` stops it"
    )
    await watch_one(lambda services: _operation_of(services, name), left, environ, interaction)


async def cancel(name: str, environ: Mapping[str, str], output: str) -> None:
    """
    Cancel an action set, and print the effect.

    Raises:
        CommandFailed: There is none of that name, or it has ended.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(APPLYING, environ) as services:
            action_set = await interrupts.or_stop(_read(services, name))
            request = applier_pb2.CancelOperationRequest(operation_id=action_set.operation_id)
            stub = ApplierServiceStub(services.applier.channel)
            try:
                answer = await services.applier.call(stub.CancelOperation, request)
            except OperationNotFound:
                ended = await interrupts.or_stop(_read(services, name))
                raise CommandFailed(f"action set {name} has already ended: {state_word(ended.state)}") from None
    if output != "text":
        print_document(document_of(answer), output)
    else:
        effect = cancel_effect(answer.effect, action_set.operation_id)
        console().print(Text(f"action set {name} {effect}; `pkger actionsets watch {name}` shows it"))


async def delete(name: str, force: bool, environ: Mapping[str, str], output: str) -> None:
    """
    Delete an action set that has ended; with *force* also a blocked one, and with the snapshots that it made.

    Raises:
        CommandFailed: There is none of that name, it has not ended, or it has snapshots.
    """
    request = action_pb2.DeleteActionSetRequest(name=name, force=force)
    with Interrupts() as interrupts, plain_errors():
        async with session(APPLYING, environ) as services:
            deleting = services.applier.call(_stub(services).DeleteActionSet, request)
            answer = await interrupts.or_stop(
                deleting, "interrupted; `pkger actionsets list` shows whether it is there"
            )
    if output != "text":
        print_document(document_of(answer), output)
    else:
        console().print(Text(f"action set {name} is deleted"))


async def _operation_of(services: Session, name: str) -> str:
    return (await _read(services, name)).operation_id


async def _read(services: Session, name: str) -> model_pb2.ActionSet:
    request = action_pb2.GetActionSetRequest(name=name)
    return (await services.applier.call(_stub(services).GetActionSet, request)).action_set


def _stub(services: Session) -> ActionServiceStub:
    return ActionServiceStub(services.applier.channel)
