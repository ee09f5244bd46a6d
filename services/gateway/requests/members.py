"""Reads bodies of requests as structs, from which OpenAPI also has their schemas; errors name the member."""

import re
from typing import Any, TypeVar

import msgspec
import orjson

from services.core.limits import MOST_ENTRIES
from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.media_types import YAML_TYPES
from services.gateway.requests.yaml_bodies import decoded_yaml
from services.kinds.registry import ACCEPTED

Body = TypeVar("Body", bound=msgspec.Struct)

Text = str | None
"""A text; null is the same as an absent member."""

NEEDED = "needed"
"""Marks, in a schema, a member that a request must have; its reader refuses its absence, with a text of its own."""

ID_EXAMPLE = "0a1b2c3d4e5f6071"

_PROBLEM = re.compile(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`(?: - at `\$\.(.*)`)?")

_OBJECTS = frozenset(("contents",))
"""Members with the objects of a package."""

_BAD_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")

_NAMES = {
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "int": "a number",
    "float": "a number",
    "null": "null",
}


def about(text: str, **schema: Any) -> msgspec.Meta:
    """The description of a member, and more members of its schema."""
    return msgspec.Meta(description=text, extra_json_schema=schema)


ID = about("16 hex digits", pattern="^[0-9a-fA-F]{16}$", examples=[ID_EXAMPLE], needed=True)

KIND = about("a kind, or the name of all kinds of checks or endpoints", enum=sorted(ACCEPTED))

NEEDED_KIND = msgspec.Meta(extra_json_schema={"enum": sorted(ACCEPTED), NEEDED: True})


def read_body(body: bytes, struct: type[Body], media_type: str = "") -> Body:
    """
    Read a body by its media type; a body that begins with ``{`` is read as JSON, as YAML does not accept all JSON.

    Args:
        body: The body.
        struct: The struct of its members.
        media_type: Its media type, without parameters.

    Raises:
        Problem: The body is invalid. The message leaves out the value, which may be a secret.
    """
    is_yaml = media_type in YAML_TYPES and not body.lstrip().startswith(b"{")
    document = decoded_yaml(body) if is_yaml else _decoded_json(body)
    try:
        members = msgspec.convert(document, struct)
    except msgspec.ValidationError as error:
        raise Problem(Code.INVALID, _message(str(error), document)) from None
    _refuse_many(members, "")
    return members


def _refuse_many(members: msgspec.Struct, place: str) -> None:
    """Refuse lists and mappings with too many entries, except for the objects of packages, which the parser counts."""
    for name in members.__struct_fields__:
        value = getattr(members, name)
        if isinstance(value, list | dict) and name not in _OBJECTS and len(value) > MOST_ENTRIES:
            problem = f"has {len(value):,} entries; at most {MOST_ENTRIES:,} are accepted"
            raise Problem(Code.INVALID, f"{place}{name}: {problem}")
        if isinstance(value, msgspec.Struct):
            _refuse_many(value, f"{place}{name}.")
        for position, entry in enumerate(value if isinstance(value, list) else ()):
            if isinstance(entry, msgspec.Struct):
                _refuse_many(entry, f"{place}{name}[{position}].")


def _decoded_json(body: bytes) -> Any:
    if not body.strip():
        raise Problem(Code.INVALID, "the body is empty; send a JSON object")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Problem(Code.INVALID, f"the body is no JSON: {error}") from None


def _message(problem: str, document: Any) -> str:
    """The message for an error of msgspec, which does not name the key of a value in a mapping."""
    parts = _PROBLEM.match(problem)
    if parts is None:
        # The text of msgspec may have a part of the value.
        return "the body has a member of the wrong type"
    expected, actual, path = parts.groups()
    if path and path.endswith("[...]"):
        member = path.removesuffix("[...]")
        key = next(key for key, value in document[member].items() if not isinstance(value, str))
        return f"{member}.{key[:60]}: write {_NAMES[expected]}"
    return f"{path or 'the body'}: write {_NAMES[expected]}, not {_NAMES[actual]}"


def refuse_bad_escapes(url: str, where: str) -> None:
    """
    Refuse an address with an invalid percent escape; the parser decides which addresses may be fetched.

    Raises:
        Problem: The address has one.
    """
    if _BAD_ESCAPE.search(url):
        raise Problem(Code.INVALID, f"{where}: {url[:200]!r} has a % that escapes nothing; write %25")
