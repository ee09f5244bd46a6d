"""Repositories as messages."""

from pkger.stack.v1 import repository_pb2

from services.core.errors import RequestInvalid
from stack_svc.messages.fields import timestamp
from stack_svc.rules.repositories import checked_patterns
from stack_svc.rules.repository_addresses import checked_address
from stack_svc.store.repositories import Repository, RepositoryChanges


def repository_to_pb(repository: Repository) -> repository_pb2.Repository:
    """Translate a repository."""
    return repository_pb2.Repository(
        name=repository.name,
        address=repository.address,
        priority=repository.priority,
        only=repository.only,
        enabled=repository.is_enabled,
        create_time=timestamp(repository.create_time),
        update_time=timestamp(repository.update_time),
    )


def fields_from_pb(request: repository_pb2.CreateRepositoryRequest) -> RepositoryChanges:
    """
    Translate the fields of a new repository.

    Raises:
        RequestInvalid: The address or a pattern is not accepted, or there are credentials.
    """
    _refuse_credentials(request)
    return RepositoryChanges(
        checked_address(request.address),
        request.priority,
        checked_patterns(request.only, "only"),
        request.enabled if request.HasField("enabled") else None,
    )


def changes_from_pb(request: repository_pb2.UpdateRepositoryRequest) -> RepositoryChanges:
    """
    Translate the changes of a repository; errors as for ``fields_from_pb``.

    Raises:
        RequestInvalid: The address or a pattern is not accepted, or there are credentials.
    """
    _refuse_credentials(request)
    return RepositoryChanges(
        checked_address(request.address) if request.HasField("address") else None,
        request.priority if request.HasField("priority") else None,
        checked_patterns(request.only.patterns, "only.patterns") if request.HasField("only") else None,
        request.enabled if request.HasField("enabled") else None,
    )


def _refuse_credentials(
    request: repository_pb2.CreateRepositoryRequest | repository_pb2.UpdateRepositoryRequest,
) -> None:
    if request.HasField("credentials"):
        raise RequestInvalid("credentials", "are not accepted yet; use a repository that is read without them")
