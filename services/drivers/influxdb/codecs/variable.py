"""Variables."""

import re
from typing import Any

from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, Refused
from services.drivers.influxdb.codecs.normal import named, normalised

_KIND = "Variable"

_RESERVED = frozenset(("and", "import", "not", "return", "option", "test", "empty", "in", "or", "package", "builtin"))

_FIRST_LETTER = re.compile("[A-Za-z_]")


def _prepare(content: Content, _references: References) -> dict[str, Any]:
    spec = named(_KIND, content)
    name = spec["name"]
    if not _FIRST_LETTER.match(name):
        raise Refused(f"the name of a variable begins with a letter from a to z or with _; found {name[:80]!r}")
    if name in _RESERVED:
        raise Refused(f"{name!r} is a keyword of Flux and cannot name a variable; choose another name")
    match spec["type"]:
        case "constant" | "map" if "values" in spec:
            return spec
        case "query":
            return spec
        case type_:
            raise Refused(f"a variable has the type constant, map or query; found {type_[:40]!r}")


def _write(spec: Content, _references: References, live: Body | None) -> dict[str, Any]:
    by_query = spec["type"] == "query"
    values = {"query": spec["query"], "language": spec["language"]} if by_query else spec["values"]
    body = {
        "name": spec["name"],
        "description": spec["description"],
        "selected": spec["selected"],
        "arguments": {"type": spec["type"], "values": values},
    }
    # A PUT stores the creation time that it has, and removes it if it has none.
    return body | ({"createdAt": live["createdAt"]} if live and "createdAt" in live else {})


def _read(live: Body) -> dict[str, Any]:
    arguments = live.get("arguments") or {}
    values = arguments.get("values")
    content = {
        "name": live["name"],
        "description": live.get("description") or "",
        "selected": live.get("selected") or [],
        "type": arguments.get("type") or "",
    }
    if arguments.get("type") == "query":
        return normalised(_KIND, {**content, **(values or {})})
    return normalised(_KIND, {**content, "values": values})


CODEC = Codec(_KIND, "variables", _prepare, _write, _read, replaces=True)
