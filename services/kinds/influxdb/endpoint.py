"""
The common parts of all kinds of notification endpoints (docs/reference/package-format.md, "Notification endpoints",
"Summary entries").
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.core.masking import has_user, masked
from services.kinds.diagnostics import Code
from services.kinds.format.field_table import DESCRIPTION, Field, Table
from services.kinds.format.fields import Fault, Fields, Remark, found_text, text_of
from services.kinds.format.kind import Kind, Read, ReadResult, Scope, Summarise, Write, short_name
from services.kinds.format.references import Referable, ReferenceSpec, UsedReference, read_reference
from services.kinds.format.shapes import Text
from services.kinds.format.urls import is_url
from services.kinds.influxdb.statuses import STATUS
from services.kinds.influxdb.summary_ids import UNKNOWN_TIMES, embedded_id

MIN_NAME_BYTES = 1
FAMILY = "endpoint"
FAMILY_KIND = "NotificationEndpoint"

_CREDENTIALS = ("token", "username", "password", "routingKey")
"""
Every endpoint registers the references of all these fields, whatever its kind uses (docs/reference/package-format.md,
"Reporting of references").
"""

FIELDS = (DESCRIPTION, Field("url", Text(required=True, what="a URL"), "Where notifications are sent."), STATUS)
REQUIRED = ("url",)


@dataclass(frozen=True, slots=True)
class SecretField:
    """A field that holds a secret: its key and its description."""

    key: str
    about: str

    def field(self) -> Field:
        """The row of the table."""
        return Field(self.key, Referable(secret=True), f"{self.about}; better a secretRef than the text itself.")

    def fault(self, fields: Fields, why: str) -> list[Fault]:
        """
        The fault of a missing credential; any value is accepted, even an empty text (docs/reference/package-format.md,
        "Oddities").
        """
        if fields.value.get(self.key) is not None:
            return []
        reason = f"{why} needs a {self.key}; write {self.key}: {{secretRef: {{key: KEY}}}}"
        return [fields.fault(Code.CREDENTIAL_MISSING, self.key, reason)]


def read(
    fields: Fields, scope: Scope, table: Table, credentials: tuple[SecretField, ...], faults: list[Fault]
) -> ReadResult:
    """
    Read an endpoint.

    Args:
        fields: Its spec.
        scope: Its context.
        table: The fields of its kind.
        credentials: The fields that hold secrets.
        faults: The faults of the fields that only its kind has.
    """
    values = table.read(fields.value)
    references = {key: read_reference(fields.value.get(key)) for key in _CREDENTIALS}
    used = {credential.key: references[credential.key] for credential in credentials}
    return ReadResult(
        {
            **values,
            **{key: _spec_value(reference, scope.env) for key, reference in used.items()},
            "name": scope.display_name,
        },
        [
            *short_name(fields, scope.display_name, MIN_NAME_BYTES),
            *_url_faults(fields, values["url"]),
            *table.field_faults(fields, values, STATUS.key),
            *faults,
        ],
        # Credentials are not listed among the environment references of the object (docs/reference/package-format.md,
        # "Where references work").
        tuple(map(UsedReference, references.values())),
        {f"/{key}": reference.written() for key, reference in used.items() if reference.is_one},
        _url_remarks(fields, values["url"]),
    )


def kind(
    name: str, about: str, fields: Table, read_fields: Read, summarise_spec: Summarise, write: Write | None = None
) -> Kind:
    """The kind of endpoints *name*: its fields, and the functions that only it has."""
    return Kind(
        name=name,
        family=FAMILY,
        family_kind=FAMILY_KIND,
        resource_type="notificationEndpoints",
        summary_key="notificationEndpoints",
        unique_display_name=True,
        min_name_bytes=MIN_NAME_BYTES,
        about=about,
        fields=fields,
        read=read_fields,
        summarise=summarise_spec,
        listed_by_kind=True,
        write=write,
    )


def summarise(spec: Mapping[str, Any], number: int, type_: str, further: Mapping[str, Any]) -> dict[str, Any]:
    """The summary entry of an endpoint; *further* are the keys that only its kind has."""
    endpoint = {
        **embedded_id(number),
        "name": spec["name"],
        **({"description": spec["description"]} if spec["description"] else {}),
        "status": spec["status"],
        **UNKNOWN_TIMES,
        "type": type_,
        **further,
    }
    return {"notificationEndpoint": endpoint}


def type_in(entry: Mapping[str, Any]) -> str:
    """The type of an endpoint in its summary *entry*."""
    type_: str = entry["notificationEndpoint"]["type"]
    return type_


def shown(credential: str | Mapping[str, Any]) -> str:
    """A credential as summaries show it: never a literal."""
    return "" if isinstance(credential, str) else f"secret: {credential['secretRef']['key']}"


def _spec_value(reference: ReferenceSpec, env: Mapping[str, Any]) -> str | dict[str, Any]:
    """The value in the spec: the key of a secret, else the literal."""
    if reference.secret_key:
        return {"secretRef": {"key": reference.secret_key}}
    if reference.env_key:
        # Unlike a name, a missing credential gets no placeholder.
        return text_of(env.get(reference.env_key)) or text_of(reference.default) or ""
    return reference.literal


def _url_faults(fields: Fields, url: str) -> list[Fault]:
    if has_user(url):
        reason = (
            "url must hold no user and no password; an HTTP endpoint of type basic takes them as username and "
            "password, each as {secretRef: {key: KEY}}"
        )
        return [fields.fault(Code.URL_WITH_USER, "url", reason)]
    if is_url(url):
        return []
    code = Code.FIELD_MISSING if fields.value.get("url") is None else Code.URL_INVALID
    # The text of an invalid URL may have a password at any place.
    content = "this is none" if url else found_text(fields, "url")
    return [fields.fault(code, "url", f"url must be a URL such as https://example.com/hook; {content}")]


def _url_remarks(fields: Fields, url: str) -> tuple[Remark, ...]:
    if has_user(url) or masked(url) == url:
        return ()
    text = (
        "this url holds a credential, and no secret can hold a url: it is stored as text, and masked where it is "
        "shown; if the server takes the credential as a token or a password, write that as {secretRef: {key: KEY}}"
    )
    return (fields.remark(Code.CREDENTIAL_IN_URL, "url", text),)
