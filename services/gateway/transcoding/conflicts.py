"""Conflicts between packages: answers with a status of their own."""

from google.protobuf.message import Message
from pkger.model.v1 import resolution_pb2
from pkger.planner.v1 import package_pb2

CONFLICT_STATUS = 409
"""The status of an answer that says why packages conflict; its body is that of any other answer."""

ANSWERS_WITH_CONFLICT = (package_pb2.ResolvePackagesResponse,)
"""The types of answers that may say so, in their field ``conflict``."""


def conflict_of(answer: Message) -> resolution_pb2.PackageConflict | None:
    """Why packages conflict; None: the answer does not say so."""
    if isinstance(answer, ANSWERS_WITH_CONFLICT) and answer.HasField("conflict"):
        return answer.conflict
    return None
