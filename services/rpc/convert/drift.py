"""Drift as messages: statuses, classes and counts."""

from typing import Any

from pkger.model.v1 import drift_pb2, object_pb2

from services.core.drift import DriftClass, DriftCounts, DriftStatus
from services.core.model import Origin
from services.rpc.convert.enums import Numbers

STATUSES = Numbers(DriftStatus, drift_pb2.DriftStatus, "DRIFT_STATUS")
CLASSES = Numbers(DriftClass, drift_pb2.DriftClass, "DRIFT_CLASS")
ORIGINS = Numbers(Origin, object_pb2.Origin, "ORIGIN")


def counts_fields(counts: DriftCounts) -> Any:
    """Counts of resources as part of another message."""
    return counts._asdict()


def counts_from_pb(message: drift_pb2.DriftCounts) -> DriftCounts:
    """Translate counts of resources."""
    return DriftCounts(*(getattr(message, field) for field in DriftCounts._fields))
