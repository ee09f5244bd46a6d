"""``pkger blueprints`` and ``configmaps``: store, list, show and delete definitions."""

from collections.abc import Mapping, Sequence

import orjson
from pkger.model.v1.definition_pb2 import Definition
from pkger.stack.v1 import definition_pb2
from pkger.stack.v1.definition_pb2_grpc import DefinitionServiceStub
from rich.text import Text

from services.actions.definitions import DefinitionKind
from services.cli.errors import CommandFailed, plain_errors
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.facts import LARGEST_PAGE, moment, print_facts, print_more
from services.cli.output.tables import print_table
from services.cli.packages.definition_files import read_definitions
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import session
from services.rpc.message_json import document_of
from services.rpc.paging import first_items

NEEDS = ("stack",)


async def store(files: Sequence[str], environ: Mapping[str, str], output: str) -> bool:
    """
    Store the blueprints and config maps of files, all of them or none.

    Returns:
        Whether they are valid; if not, the violations are printed.

    Raises:
        CommandFailed: A file cannot be read, or has an action set.
    """
    with Interrupts() as interrupts, plain_errors():
        definitions = await interrupts.or_stop(read_definitions(files, environ))
        if definitions is None:
            return False
        _refuse_action_sets(definitions)
        async with session(NEEDS, environ) as services:
            stub = DefinitionServiceStub(services.stack.channel)
            changes = [definition_pb2.DefinitionChange(definition=each) for each in definitions]
            storing = services.stack.call(stub.PutDefinitions, definition_pb2.PutDefinitionsRequest(changes=changes))
            answer = await interrupts.or_stop(storing)
    if output != "text":
        print_document(document_of(answer), output)
    else:
        for each in answer.definitions:
            console().print(Text(f"{each.definition.kind} {each.definition.name} is stored"))
    return True


def _refuse_action_sets(definitions: Sequence[Definition]) -> None:
    for definition in definitions:
        if definition.kind == DefinitionKind.ACTION_SET:
            name = f" {definition.name}" if definition.name else ""
            raise CommandFailed(
                f"action set{name}: an action set is a request, and is not stored; leave it out of the files"
            )


async def list_all(kind: DefinitionKind, environ: Mapping[str, str], output: str, limit: int | None) -> None:
    """Print the stored definitions of *kind*, at most *limit* of them, by name."""
    request = definition_pb2.ListDefinitionsRequest(kind=kind, page_size=min(limit or LARGEST_PAGE, LARGEST_PAGE))
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stub = DefinitionServiceStub(services.stack.channel)
            listing = first_items(services.stack, stub.ListDefinitions, request, lambda page: page.definitions, limit)
            definitions, has_more = await interrupts.or_stop(listing)
    if output != "text":
        print_document([document_of(each) for each in definitions], output)
    else:
        rows = [(each.definition.name, moment(each.update_time), each.description) for each in definitions]
        print_table(console(), ("NAME", "UPDATED", "DESCRIPTION"), rows)
    print_more(has_more)


async def show(kind: DefinitionKind, name: str, environ: Mapping[str, str], output: str) -> None:
    """
    Print a stored definition.

    Raises:
        CommandFailed: There is none of that name.
    """
    request = definition_pb2.GetDefinitionRequest(kind=kind, name=name)
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stub = DefinitionServiceStub(services.stack.channel)
            answer = await interrupts.or_stop(services.stack.call(stub.GetDefinition, request))
    if output != "text":
        print_document(document_of(answer.definition), output)
        return
    stored = answer.definition
    facts = {"etag": stored.etag, "created": moment(stored.create_time), "updated": moment(stored.update_time)}
    print_facts(console(), f"{kind} {name}", facts)
    print_document(orjson.loads(stored.definition.json), "yaml")


async def delete(kind: DefinitionKind, name: str, environ: Mapping[str, str], output: str) -> None:
    """
    Delete a stored definition.

    Raises:
        CommandFailed: There is none of that name.
    """
    request = definition_pb2.DeleteDefinitionRequest(kind=kind, name=name)
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stub = DefinitionServiceStub(services.stack.channel)
            answer = await interrupts.or_stop(services.stack.call(stub.DeleteDefinition, request))
    if output != "text":
        print_document(document_of(answer), output)
    else:
        console().print(Text(f"{kind} {name} is deleted"))
