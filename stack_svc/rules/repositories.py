"""Repositories: their names, addresses and patterns (docs/dependencies.md, "Several repositories")."""

import re
from collections.abc import Sequence

from services.core.errors import RepositoryExists, RepositoryInUse, RepositoryNotFound, RequestInvalid
from services.kinds.format.package_names import is_package_name
from stack_svc.rules import requests
from stack_svc.rules.requests import RequestId
from stack_svc.store.repositories import NO_CHANGES, Repository, RepositoryChanges
from stack_svc.store.store import ReadTransaction, Transaction

MOST_PATTERNS = 100
"""Largest number of patterns of one repository (repository.proto)."""

_MOST_SHOWN = 10
"""Largest number of packages that an error names (reason.proto)."""

_BEGINNING = re.compile(r"([a-z0-9][a-z0-9-]{0,62})?\*")
"""A pattern for all names with a beginning."""


def checked_name(name: str) -> str:
    """
    Accept the name of a repository.

    Raises:
        RequestInvalid: It has not the form of a name.
    """
    if not is_package_name(name):
        problem = "a repository's name is 1 to 63 lower-case letters, digits and '-', which is neither first nor last"
        raise RequestInvalid("name", problem)
    return name


def checked_patterns(patterns: Sequence[str], field: str) -> tuple[str, ...]:
    """
    Accept the patterns of the names that a repository serves.

    Args:
        patterns: The patterns, in order.
        field: Name of the field of the request, for errors.

    Raises:
        RequestInvalid: There are too many, or one occurs twice or can match no name.
    """
    first: dict[str, int] = {}
    if len(patterns) > MOST_PATTERNS:
        raise RequestInvalid(field, f"a repository has at most {MOST_PATTERNS} patterns, and not {len(patterns)}")
    for number, pattern in enumerate(patterns):
        if not (is_package_name(pattern) or _BEGINNING.fullmatch(pattern)):
            problem = "is no pattern: write the name of a package, or the beginning of names and '*', such as web-*"
            raise RequestInvalid(f"{field}[{number}]", problem)
        if first.setdefault(pattern, number) < number:
            raise RequestInvalid(f"{field}[{number}]", f"is the same as {field}[{first[pattern]}]; remove one of them")
    return tuple(patterns)


def existing(reading: ReadTransaction, name: str) -> Repository:
    """
    Read a repository.

    Raises:
        RepositoryNotFound: There is none of that name.
    """
    repository = reading.repositories.find(name)
    if repository is None:
        raise RepositoryNotFound(name)
    return repository


def create(tx: Transaction, name: str, fields: RepositoryChanges, request: RequestId) -> Repository:
    """
    Add a repository, once for each request.

    Args:
        tx: The transaction.
        name: Its name.
        fields: Its fields; one that is None has its default.
        request: The request.

    Raises:
        RepositoryExists: Another one has the name.
        RequestIdReused: The request id was used with other content.
        RepositoryNotFound: This request created a repository before, which was deleted.
    """
    now = tx.now()
    if requests.earlier_answer(tx, request, now):
        return existing(tx, name)
    is_enabled = fields.is_enabled is not False
    repository = Repository(name, fields.address or "", fields.priority or 0, fields.only or (), is_enabled, now, now)
    if not tx.repositories.insert(repository):
        raise RepositoryExists(name)
    requests.store_answer(tx, request, _answer(name), now)
    return repository


def update(
    tx: Transaction, name: str, changes: RepositoryChanges, request: RequestId, is_forced: bool = False
) -> Repository:
    """
    Change a repository, once for each request; if nothing is to change, nothing is written.

    Raises:
        RepositoryNotFound: There is none of that name.
        RepositoryInUse: Its address is to change, packages are installed from it, and the change is not forced.
        RequestIdReused: The request id was used with other content.
    """
    now = tx.now()
    if requests.earlier_answer(tx, request, now) or changes == NO_CHANGES:
        return existing(tx, name)
    if not is_forced and changes.address not in (None, existing(tx, name).address):
        _refuse_used(tx, name)
    repository = tx.repositories.change(name, changes, now)
    if repository is None:
        raise RepositoryNotFound(name)
    requests.store_answer(tx, request, _answer(name), now)
    return repository


def delete(tx: Transaction, name: str) -> None:
    """
    Remove a repository.

    Raises:
        RepositoryNotFound: There is none of that name.
        RepositoryInUse: Packages are installed from it.
    """
    _refuse_used(tx, name)
    if not tx.repositories.delete(name):
        raise RepositoryNotFound(name)


def _refuse_used(reading: ReadTransaction, name: str) -> None:
    """Raise RepositoryInUse while packages are installed from the repository."""
    if users := reading.packages.users_of(name, _MOST_SHOWN):
        raise RepositoryInUse(name, [f"{each.package} of {each.stack_name or each.stack}" for each in users])


def _answer(name: str) -> str:
    """The answer to a request; the ids of operations, which are answers as well, have no slash."""
    return f"repositories/{name}"
