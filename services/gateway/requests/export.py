"""Reads requests of ``POST /api/v2/templates/export``."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Struct

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.ids import id_of, is_id, resource_id_of
from services.gateway.requests.members import ID, KIND, NEEDED_KIND, Text, about, read_body
from services.kinds.kind_words import unknown_kind
from services.kinds.registry import ACCEPTED


class ResourceFilters(Struct):
    """Filters; a resource passes if it passes both."""

    byLabel: Annotated[list[str] | None, about("names of labels; a resource has one of them")] = None
    byResourceKind: list[Annotated[str, KIND]] | None = None


class OrgToExport(Struct):
    """The resources of an organization; with filters, only resources that pass."""

    orgID: Annotated[Text, ID] = None
    resourceFilters: ResourceFilters | None = None


class ResourceToExport(Struct):
    """A resource: the one with an id, or all with a name."""

    kind: Annotated[Text, NEEDED_KIND] = None
    id: Annotated[Text, about("its id")] = None
    name: Annotated[Text, about("its name; beside an id, the name to export it under")] = None


class ExportRequest(Struct):
    """The resources to export; at least one of the three members is needed."""

    stackID: Annotated[Text, about("a stack, with all its resources; empty for none")] = None
    orgIDs: list[OrgToExport] | None = None
    resources: list[ResourceToExport] | None = None


@dataclass(frozen=True, slots=True)
class NamedResource:
    """
    A resource, or all resources with one display name.

    Attributes:
        kind: Its kind, or the name of a family.
        id: Its id; empty: it has only a display name.
        name: Its display name; empty: it has only an id. With an id, too, the text may be either.
        new_name: Name to export it under; empty: its own.
    """

    kind: str
    id: str = ""
    name: str = ""
    new_name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.id or self.name}"


@dataclass(frozen=True, slots=True)
class WholeOrg:
    """
    The resources of an organization that pass a filter.

    Attributes:
        org_id: Id of the organization.
        kinds: Kinds and names of families; empty: all kinds.
        labels: Names of labels, of which a resource needs one; empty: no label is needed.
    """

    org_id: str
    kinds: Sequence[str] = ()
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Export:
    """
    The request to export resources.

    Attributes:
        stack_id: Stack whose resources are exported; empty for none.
        orgs: Organizations whose resources are exported.
        resources: Single resources, of any organization that is served.
    """

    stack_id: str = ""
    orgs: Sequence[WholeOrg] = ()
    resources: Sequence[NamedResource] = ()


def read_export(body: bytes, media_type: str = "") -> Export:
    """
    Read the body of an export.

    Raises:
        Problem: The body is invalid.
    """
    request = read_body(body, ExportRequest, media_type)
    orgs, entries = request.orgIDs or [], request.resources or []
    names = {(entry.kind, entry.name or "") for entry in entries if entry.id is None}
    twins = names & {(entry.kind, entry.id) for entry in entries}
    # Ids are checked first, as InfluxDB refuses an invalid id while it decodes the body.
    stack_id = id_of(request.stackID, "stackID") if request.stackID else ""
    org_ids = [id_of(org.orgID or "", f"orgIDs[{place}].orgID") for place, org in enumerate(orgs)]
    named = [each for place, entry in enumerate(entries) for each in _named(entry, twins, f"resources[{place}].id")]
    if not (stack_id or orgs or entries):
        raise Problem(
            Code.UNPROCESSABLE_ENTITY,
            "nothing to export: the request needs stackID, orgIDs or resources, or several of them",
        )
    for place, entry in enumerate(entries):
        _refuse_unknown(entry.kind or "", f"resources[{place}].kind")
        if entry.id is None and not entry.name:
            message = f"resources[{place}].id: write the id or the name of the resource"
            raise Problem(Code.UNPROCESSABLE_ENTITY, message)
    whole = [
        _whole(org_id, org.resourceFilters or ResourceFilters(), f"orgIDs[{place}].resourceFilters.byResourceKind")
        for place, (org, org_id) in enumerate(zip(orgs, org_ids, strict=True))
    ]
    return Export(stack_id, tuple(whole), tuple(dict.fromkeys(named)))


def _named(entry: ResourceToExport, twins: Container[tuple[Text, Text]], place: str) -> Iterator[NamedResource]:
    """
    The resource of an entry; none for an entry with an id whose twin has the name.

    The command line sends each argument behind ``--resource-type`` twice: in one entry as an id, in another one as a
    name. The second entry of such *twins* stands for both.
    """
    kind, name = entry.kind or "", entry.name or ""
    if entry.id is None:
        is_either = (entry.kind, name) in twins and is_id(name)
        yield NamedResource(kind, id=name.lower() if is_either else "", name=name)
    elif (entry.kind, entry.id) not in twins:
        yield NamedResource(kind, id=resource_id_of(entry.id, place), new_name=name)


def _whole(org_id: str, filters: ResourceFilters, place: str) -> WholeOrg:
    kinds = tuple(filters.byResourceKind or ())
    for index, kind in enumerate(kinds):
        _refuse_unknown(kind, f"{place}[{index}]")
    return WholeOrg(org_id, kinds, tuple(filters.byLabel or ()))


def _refuse_unknown(kind: str, where: str) -> None:
    if kind not in ACCEPTED:
        raise Problem(Code.UNPROCESSABLE_ENTITY, f"{where}: {unknown_kind(kind)}")
