"""``pkger repo add``, ``list``, ``update``, ``remove``, ``enable`` and ``disable``."""

from collections.abc import Iterable, Mapping

from pkger.stack.v1 import repository_pb2
from pkger.stack.v1.repository_pb2_grpc import RepositoryServiceStub
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.output.consoles import console, print_warnings
from services.cli.output.documents import print_document
from services.cli.output.facts import LARGEST_PAGE, moment, print_facts, print_more
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import session
from services.rpc.message_json import document_of
from services.rpc.paging import first_items

NEEDS = ("stack",)


async def add(request: repository_pb2.CreateRepositoryRequest, environ: Mapping[str, str], output: str) -> None:
    """
    Add a repository, and print it.

    Raises:
        CommandFailed: Its name is taken, or its name, its address or a pattern is not accepted.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stub = RepositoryServiceStub(services.stack.channel)
            answer = await interrupts.or_stop(services.stack.call(stub.CreateRepository, request))
    _print(answer.repository, output)
    print_warnings(answer.warnings)


async def update(request: repository_pb2.UpdateRepositoryRequest, environ: Mapping[str, str], output: str) -> None:
    """
    Change a repository, and print it.

    Raises:
        CommandFailed: There is no such repository, or its new address or a pattern is not accepted.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stub = RepositoryServiceStub(services.stack.channel)
            answer = await interrupts.or_stop(services.stack.call(stub.UpdateRepository, request))
    _print(answer.repository, output)
    print_warnings(answer.warnings)


async def remove(name: str, environ: Mapping[str, str], output: str) -> None:
    """
    Remove a repository.

    Raises:
        CommandFailed: There is no such repository.
    """
    request = repository_pb2.DeleteRepositoryRequest(name=name)
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stub = RepositoryServiceStub(services.stack.channel)
            answer = await interrupts.or_stop(services.stack.call(stub.DeleteRepository, request))
    if output != "text":
        print_document(document_of(answer), output)
    else:
        console().print(Text(f"repository {name} is removed"))


async def list_all(environ: Mapping[str, str], output: str, limit: int | None) -> None:
    """Print the repositories, at most *limit* of them: as text, the highest priority first; as data, by name."""
    request = repository_pb2.ListRepositoriesRequest(page_size=min(limit or LARGEST_PAGE, LARGEST_PAGE))
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stub = RepositoryServiceStub(services.stack.channel)
            listing = first_items(services.stack, stub.ListRepositories, request, lambda page: page.repositories, limit)
            repositories, has_more = await interrupts.or_stop(listing)
    if output != "text":
        print_document([document_of(each) for each in repositories], output)
    else:
        _print_table(repositories)
    print_more(has_more)


def _print_table(repositories: Iterable[repository_pb2.Repository]) -> None:
    rows = [
        (each.name, each.address, str(each.priority), ", ".join(each.only), _state(each))
        for each in sorted(repositories, key=lambda each: (-each.priority, each.name))
    ]
    print_table(console(), ("NAME", "ADDRESS", "PRIORITY", "ONLY", "STATE"), rows)


def _print(repository: repository_pb2.Repository, output: str) -> None:
    if output != "text":
        print_document(document_of(repository), output)
        return
    facts = {
        "address": repository.address,
        "priority": str(repository.priority),
        "only": ", ".join(repository.only),
        "state": _state(repository),
        "created": moment(repository.create_time),
        "updated": moment(repository.update_time),
    }
    print_facts(console(), f"repository {repository.name}", facts)


def _state(repository: repository_pb2.Repository) -> str:
    return "enabled" if repository.enabled else "disabled"
