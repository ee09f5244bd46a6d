"""The resources that a request asks to export, checked and with the kinds of the platform."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pkger.planner.v1 import planner_pb2

from services.core.errors import KindUnsupported, RequestInvalid
from services.core.model import PlatformTraits, ResourceKey
from services.kinds.format.shapes import nearest
from services.kinds.registry import ACCEPTED, kinds_meant


@dataclass(frozen=True, slots=True)
class ResourceFilter:
    """
    A filter on the resources of a target.

    Attributes:
        kinds: Kinds of the platform; None: all, including kinds that packages do not have.
        labels: Names of labels of which a resource must carry at least one; empty: labels do not matter.
    """

    kinds: frozenset[str] | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedResource:
    """
    Resources that a request names.

    Attributes:
        position: The position in the list of the request.
        word: The kind, or the family, as the request has it.
        kinds: The kinds of the platform that *word* stands for.
        id: Id of the resource; empty when only a name is given.
        name: Display name; empty when only an id is given. With an id: it counts only if no resource has the id.
        new_name: Display name to export it under; empty: its own.
    """

    position: int
    word: str
    kinds: tuple[str, ...]
    id: str = ""
    name: str = ""
    new_name: str = ""

    def __str__(self) -> str:
        return f"{self.word} {self.name!r}" if self.name else f"{self.word} with id {self.id!r}"


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """
    The resources to export in addition to the resources of a stack; *everything* is None if no filter selects
    resources.
    """

    everything: ResourceFilter | None = None
    named: tuple[NamedResource, ...] = ()

    @property
    def by_id(self) -> list[ResourceKey]:
        """The resources that are named only by their ids, each in all kinds of its word."""
        return [(kind, each.id) for each in self.named if each.id and not each.name for kind in each.kinds]


def wanted_from_pb(request: planner_pb2.ExportPackageRequest, platform: PlatformTraits) -> ExportSelection:
    """
    Read and check a request.

    Raises:
        RequestInvalid: It names no resources, or a field is invalid.
        KindUnsupported: It names a kind that the platform does not have.
    """
    if not (request.HasField("stack") or request.HasField("everything") or request.resources):
        raise RequestInvalid("resources", "name what to export: a stack, everything, or resources")
    if not request.schema.isprintable():
        raise RequestInvalid("schema", "it has control characters; give the file or the address of a JSON Schema")
    everything = _filter(request.everything, platform) if request.HasField("everything") else None
    return ExportSelection(
        everything, tuple(_named(position, each, platform) for position, each in enumerate(request.resources))
    )


def _filter(message: planner_pb2.ExportFilter, platform: PlatformTraits) -> ResourceFilter:
    for position, name in enumerate(message.labels):
        if not name:
            raise RequestInvalid(f"everything.labels[{position}]", "is empty; give the name of a label")
    if not message.kinds:
        return ResourceFilter(None, tuple(message.labels))
    kinds = {
        kind
        for position, word in enumerate(message.kinds)
        for kind in _kinds(f"everything.kinds[{position}]", word, platform)
    }
    return ResourceFilter(frozenset(kinds), tuple(message.labels))


def _named(position: int, message: planner_pb2.NamedResource, platform: PlatformTraits) -> NamedResource:
    field = f"resources[{position}]"
    kinds = _kinds(f"{field}.kind", message.kind, platform)
    which = message.WhichOneof("resource")
    value = getattr(message, which) if which else ""
    if not value:
        raise RequestInvalid(field, "say which resource: by id, by name, or by id_or_name")
    fields_by_choice: Mapping[str, Any] = {
        "id": {"id": value},
        "name": {"name": value},
        "id_or_name": {"id": value, "name": value},
    }
    return NamedResource(position, message.kind, kinds, new_name=message.new_name, **fields_by_choice[str(which)])


def _kinds(field: str, word: str, platform: PlatformTraits) -> tuple[str, ...]:
    """The kinds of the platform that *word* stands for: a kind, or all kinds of a family."""
    if word not in ACCEPTED:
        raise RequestInvalid(field, _unknown(word, platform))
    kinds = tuple(kind for kind in kinds_meant(word) if kind in platform.kinds)
    if not kinds:
        raise KindUnsupported(platform.platform, word)
    return kinds


def _unknown(word: str, platform: PlatformTraits) -> str:
    if not word:
        return "name a kind"
    if word in platform.kinds:
        return f"packages have no kind {word!r}, so it cannot be exported"
    alike = nearest(word, ACCEPTED)
    return f"there is no kind {word[:60]!r}; write " + (alike or f"one of {', '.join(sorted(ACCEPTED))}")
