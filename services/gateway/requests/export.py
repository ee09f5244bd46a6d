"""Reads requests of ``POST /api/v2/templates/export``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.ids import id_of, is_id, resource_id_of
from services.gateway.requests.members import Members
from services.gateway.requests.yaml_bodies import decoded_as
from services.kinds.kind_words import unknown_kind
from services.kinds.registry import ACCEPTED


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
    The resources of an organisation that pass a filter.

    Attributes:
        org_id: Id of the organisation.
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
        orgs: Organisations whose resources are exported.
        resources: Single resources, of any organisation that is served.
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
    members = decoded_as(media_type, body)
    stack, orgs, entries = members.text("stackID"), list(members.objects("orgIDs")), list(members.objects("resources"))
    names = {(entry.text("kind"), entry.text("name")) for entry in entries if not entry.has("id")}
    twins = names & {(entry.text("kind"), entry.text("id")) for entry in entries}
    # Ids are checked first, as InfluxDB refuses an invalid id while it decodes the body.
    stack_id = id_of(stack, "stackID") if stack else ""
    org_ids = [id_of(org.text("orgID"), org.place("orgID")) for org in orgs]
    named = [each for entry in entries for each in _named(entry, twins)]
    if not (stack_id or orgs or entries):
        raise Problem(
            Code.UNPROCESSABLE_ENTITY,
            "nothing to export: the request needs stackID, orgIDs or resources, or several of them",
        )
    for entry in entries:
        _refuse_unknown(entry.text("kind"), entry.place("kind"))
        if not (entry.has("id") or entry.text("name")):
            raise Problem(Code.UNPROCESSABLE_ENTITY, f"{entry.place('id')}: write the id or the name of the resource")
    whole = tuple(_whole(org, org_id) for org, org_id in zip(orgs, org_ids, strict=True))
    return Export(stack_id, whole, tuple(dict.fromkeys(named)))


def _named(entry: Members, twins: set[tuple[str, str]]) -> Iterator[NamedResource]:
    """
    The resource of an entry; none for an entry with an id whose twin has the name.

    The command line sends each argument behind ``--resource-type`` twice: in one entry as an id, in another one as a
    name. The second entry of such *twins* stands for both.
    """
    kind, name = entry.text("kind"), entry.text("name")
    if not entry.has("id"):
        is_either = (kind, name) in twins and is_id(name)
        yield NamedResource(kind, id=name.lower() if is_either else "", name=name)
    elif (kind, entry.text("id")) not in twins:
        yield NamedResource(kind, id=resource_id_of(entry.text("id"), entry.place("id")), new_name=name)


def _whole(org: Members, org_id: str) -> WholeOrg:
    filters = org.object("resourceFilters")
    if filters is None:
        return WholeOrg(org_id)
    kinds = filters.texts("byResourceKind")
    for place, kind in enumerate(kinds):
        _refuse_unknown(kind, f"{filters.place('byResourceKind')}[{place}]")
    return WholeOrg(org_id, tuple(kinds), tuple(filters.texts("byLabel")))


def _refuse_unknown(kind: str, where: str) -> None:
    if kind not in ACCEPTED:
        raise Problem(Code.UNPROCESSABLE_ENTITY, f"{where}: {unknown_kind(kind)}")
