"""``POST /api/v2/templates/export``."""

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
    What one entry names.

    Attributes:
        kind: Its kind, or the word for a family.
        id: Its id; empty: it is named by its display name alone.
        name: Its display name; empty: it is named by its id alone. Beside an id, the name of what has no such id.
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
    All of an organisation that passes.

    Attributes:
        org_id: The organisation.
        kinds: Kinds and words for families; empty: all.
        labels: Names of labels of which a resource has to have one; empty: any.
    """

    org_id: str
    kinds: Sequence[str] = ()
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Export:
    """
    What somebody asks for.

    Attributes:
        stack_id: Stack whose resources are exported; empty for none.
        orgs: Organisations.
        resources: Single resources, whose organisation nobody says.
    """

    stack_id: str = ""
    orgs: Sequence[WholeOrg] = ()
    resources: Sequence[NamedResource] = ()


def read_export(body: bytes, media_type: str = "") -> Export:
    """
    What a body, of that media type, asks for.

    Raises:
        Problem: It asks for nothing that can be.
    """
    members = decoded_as(media_type, body)
    stack, orgs, entries = members.text("stackID"), list(members.objects("orgIDs")), list(members.objects("resources"))
    names = {(entry.text("kind"), entry.text("name")) for entry in entries if not entry.has("id")}
    twins = names & {(entry.text("kind"), entry.text("id")) for entry in entries}
    # All ids before all else, as they are refused while a body is decoded.
    stack_id = id_of(stack, "stackID") if stack else ""
    org_ids = [id_of(org.text("orgID"), org.place("orgID")) for org in orgs]
    named = [each for entry in entries for each in _named(entry, twins)]
    if not (stack_id or orgs or entries):
        raise Problem(
            Code.UNPROCESSABLE_ENTITY,
            "nothing to export is named: write stackID, orgIDs, resources, or several of them",
        )
    for entry in entries:
        _refuse_unknown(entry.text("kind"), entry.place("kind"))
        if not (entry.has("id") or entry.text("name")):
            raise Problem(Code.UNPROCESSABLE_ENTITY, f"{entry.place('id')}: write the id or the name of the resource")
    whole = tuple(_whole(org, org_id) for org, org_id in zip(orgs, org_ids, strict=True))
    return Export(stack_id, whole, tuple(dict.fromkeys(named)))


def _named(entry: Members, twins: set[tuple[str, str]]) -> Iterator[NamedResource]:
    """
    What an entry names.

    The command line sends each word of ``--resource-type`` as an id and, in an entry of its own, as a name: of such
    *twins*, the one with the name stands for both.
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
