"""Reads requests of ``/api/v2/stacks``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Struct
from multidict import MultiMapping

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.ids import id_of, resource_id_of
from services.gateway.requests.members import ID, ID_EXAMPLE, NEEDED_KIND, Text, about, read_body, refuse_bad_escapes
from services.kinds.kind_words import unknown_kind
from services.kinds.registry import ACCEPTED


class StackCreation(Struct):
    """A stack to create."""

    orgID: Annotated[Text, ID] = None
    name: Annotated[Text, about("empty for a nameless stack")] = None
    description: Text = None
    urls: Annotated[list[str] | None, about("addresses of packages, which are part of every apply")] = None


class ResourceToImport(Struct):
    """A resource to import."""

    kind: Annotated[Text, NEEDED_KIND] = None
    resourceID: Annotated[Text, about("its id", examples=[ID_EXAMPLE], needed=True)] = None
    templateMetaName: Annotated[Text, about("metadata.name of its object")] = None


class StackUpdate(Struct):
    """Changes of a stack; a member that is absent or null changes nothing."""

    name: Text = None
    description: Text = None
    templateURLs: Annotated[list[str] | None, about("addresses that replace all others")] = None
    urls: Annotated[list[str] | None, about("addresses to add")] = None
    additionalResources: list[ResourceToImport] | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """
    The request to list stacks. A stack is listed if it has one of the ids or names; all stacks if there are none.

    Attributes:
        org_id: Id of their organization.
        ids: Ids of stacks.
        names: Names of stacks.
    """

    org_id: str
    ids: Sequence[str] = ()
    names: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Creation:
    """The request to create a stack; its attributes are those of the stack."""

    org_id: str
    name: str = ""
    description: str = ""
    urls: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Addition:
    """
    A resource to import into a stack.

    Attributes:
        kind: Its kind, or the name of a family.
        resource_id: Its id.
        name: metadata.name of its object; empty: it is generated.
    """

    kind: str
    resource_id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """
    The request to update a stack.

    Attributes:
        name: The new name; None: no change.
        description: The new description; None: no change.
        urls: The new URLs; None: no change.
        more_urls: URLs to append to the new URLs, or to the current ones.
        additions: Resources to import.
    """

    name: str | None = None
    description: str | None = None
    urls: Sequence[str] | None = None
    more_urls: Sequence[str] = ()
    additions: Sequence[Addition] = ()


def read_listing(query: MultiMapping[str]) -> Listing:
    """
    Read the query of a list of stacks.

    Raises:
        Problem: It names no organization, or an id in it is invalid.
    """
    org_id = read_org(query)
    if not org_id:
        raise Problem(Code.INVALID, "orgID: name the organization by its id; /api/v2/orgs lists them")
    ids = [id_of(text, "stackID") for text in query.getall("stackID", ())]
    return Listing(org_id, tuple(dict.fromkeys(ids)), tuple(query.getall("name", ())))


def read_org(query: MultiMapping[str]) -> str:
    """
    The id of the organization in a query; empty without one.

    Raises:
        Problem: It is not an id.
    """
    return id_of(query["orgID"], "orgID") if "orgID" in query else ""


def read_creation(body: bytes) -> Creation:
    """
    Read the body of a creation.

    Raises:
        Problem: The body is invalid.
    """
    request = read_body(body, StackCreation)
    urls = _urls(request.urls, "urls")
    return Creation(id_of(request.orgID or "", "orgID"), request.name or "", request.description or "", urls)


def read_update(body: bytes) -> Update:
    """
    Read the body of an update.

    Raises:
        Problem: The body is invalid.
    """
    request = read_body(body, StackUpdate)
    resources = enumerate(request.additionalResources or [])
    update = Update(
        request.name,
        request.description,
        None if request.templateURLs is None else _urls(request.templateURLs, "templateURLs"),
        _urls(request.urls, "urls"),
        tuple(dict.fromkeys(_addition(each, f"additionalResources[{place}]") for place, each in resources)),
    )
    for place, addition in enumerate(update.additions):
        if addition.kind not in ACCEPTED:
            message = f"additionalResources[{place}].kind: {unknown_kind(addition.kind)}"
            raise Problem(Code.UNPROCESSABLE_ENTITY, message)
    return update


def _urls(urls: Sequence[str] | None, name: str) -> tuple[str, ...]:
    for place, url in enumerate(urls or ()):
        refuse_bad_escapes(url, f"{name}[{place}]")
    return tuple(urls or ())


def _addition(entry: ResourceToImport, place: str) -> Addition:
    resource_id = resource_id_of(entry.resourceID or "", f"{place}.resourceID")
    return Addition(entry.kind or "", resource_id, entry.templateMetaName or "")
