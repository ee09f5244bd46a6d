"""What is wrong with one file of a repository."""

from services.packages.index_files import RepositoryFault


class FileProblem(Exception):
    """
    A file of a repository breaks a rule, or is not there.

    Attributes:
        fault: The kind of rule.
        problem: What is wrong, where in the file, and what to do, without a full stop.
    """

    def __init__(self, fault: RepositoryFault, problem: str) -> None:
        super().__init__(problem)
        self.fault = fault
        self.problem = problem


def files_too_large(max_bytes: int) -> str:
    """The problem of the file with which a version exceeds its bound."""
    return f"with this file, the version has more than {max_bytes:,} bytes; make its files smaller"
