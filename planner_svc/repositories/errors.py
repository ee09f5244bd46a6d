"""Why something cannot be read from a repository."""

from services.packages.index_files import RepositoryFault


class RepositoryInvalid(Exception):
    """
    A file of a repository breaks a rule, or is not there.

    Attributes:
        repository: Name of the repository.
        file: Path of the file in it.
        fault: The kind of rule.
        problem: What is wrong, where in the file, and what to do, without a full stop.
    """

    def __init__(self, repository: str, file: str, fault: RepositoryFault, problem: str) -> None:
        super().__init__(f"repository {repository!r}: {file}: {problem}")
        self.repository = repository
        self.file = file
        self.fault = fault
        self.problem = problem


class RepositoryUnavailable(Exception):
    """
    A repository does not answer, or must not be asked.

    Attributes:
        repository: Name of the repository.
        problem: What is wrong and what to do, without a full stop.
    """

    def __init__(self, repository: str, problem: str) -> None:
        super().__init__(f"repository {repository!r} cannot be read: {problem}")
        self.repository = repository
        self.problem = problem


class Unavailable(Exception):
    """The place of a file does not answer; a reader adds the name of the repository."""
