"""``/api/v2/stacks``."""

from collections.abc import Sequence
from dataclasses import dataclass

from multidict import MultiMapping

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.ids import id_of, resource_id_of
from services.gateway.requests.members import Members, decoded
from services.gateway.requests.urls import refuse_bad_escapes
from services.kinds.kind_words import unknown_kind
from services.kinds.registry import ACCEPTED


@dataclass(frozen=True, slots=True)
class Listing:
    """
    Which stacks to list.

    Attributes:
        org_id: Their organisation.
        ids: Ids; with *names*, a stack passes that has one of either. None of both: all stacks.
        names: Names.
    """

    org_id: str
    ids: Sequence[str] = ()
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Creation:
    """A stack to make; attributes as its members."""

    org_id: str
    name: str = ""
    description: str = ""
    urls: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Addition:
    """
    A resource to take into a stack.

    Attributes:
        kind: Its kind, or the word for a family.
        resource_id: Its id.
        name: metadata.name of its object; empty: one is made.
    """

    kind: str
    resource_id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """
    What changes of a stack.

    Attributes:
        name: The new name; None: it stays.
        description: The new description; None: it stays.
        urls: The new URLs; None: they stay.
        more_urls: URLs to put behind those that it has, or gets.
        additions: Resources to take in.
    """

    name: str | None = None
    description: str | None = None
    urls: Sequence[str] | None = None
    more_urls: Sequence[str] = ()
    additions: Sequence[Addition] = ()


def read_listing(query: MultiMapping[str]) -> Listing:
    """
    Which stacks a query is for.

    Raises:
        Problem: It has no organisation, or an id that is none.
    """
    org_id = read_org(query)
    if not org_id:
        raise Problem(Code.INVALID, "orgID: name the organisation by its id; /api/v2/orgs lists them")
    ids = [id_of(text, "stackID") for text in query.getall("stackID", ())]
    return Listing(org_id, tuple(dict.fromkeys(ids)), tuple(query.getall("name", ())))


def read_org(query: MultiMapping[str]) -> str:
    """
    The organisation that a query names; empty: none.

    Raises:
        Problem: What it names is no id.
    """
    return id_of(query["orgID"], "orgID") if "orgID" in query else ""


def read_creation(body: bytes) -> Creation:
    """
    The stack that a body describes.

    Raises:
        Problem: It describes none.
    """
    members = decoded(body)
    name, description, urls = members.text("name"), members.text("description"), _urls(members, "urls")
    return Creation(id_of(members.text("orgID"), "orgID"), name, description, urls)


def read_update(body: bytes) -> Update:
    """
    What a body changes.

    Raises:
        Problem: It changes nothing that can be.
    """
    members = decoded(body)
    update = Update(
        members.text("name") if members.has("name") else None,
        members.text("description") if members.has("description") else None,
        _urls(members, "templateURLs") if members.has("templateURLs") else None,
        _urls(members, "urls"),
        tuple(dict.fromkeys(map(_addition, members.objects("additionalResources")))),
    )
    for place, addition in enumerate(update.additions):
        if addition.kind not in ACCEPTED:
            told = f"additionalResources[{place}].kind: {unknown_kind(addition.kind)}"
            raise Problem(Code.UNPROCESSABLE_ENTITY, told)
    return update


def _urls(members: Members, name: str) -> tuple[str, ...]:
    urls = tuple(members.texts(name))
    for place, url in enumerate(urls):
        refuse_bad_escapes(url, f"{members.place(name)}[{place}]")
    return urls


def _addition(entry: Members) -> Addition:
    resource_id = resource_id_of(entry.text("resourceID"), entry.place("resourceID"))
    return Addition(entry.text("kind"), resource_id, entry.text("templateMetaName"))
