"""
Small worlds of packages as text, and answers as text.

A package is ``NAME VERSION [REQUIRED RANGE, ...] | VERSION ...``; a version can be followed by ``yanked`` and ``for
RANGE`` (of pkger), and ``NAME*VERSION`` sets the latest version. An installed package is ``NAME VERSION [REQUIRED
RANGE, ...]`` with ``auto``, ``pinned``, ``suspended``, ``from REPOSITORY`` and ``wants RANGE`` behind it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner_svc.resolution.model import Change, ChangeAction, Conflict, Resolution

D = "d 1.2.1 | 1.2.9 | 1.4.0 | 2.0.0 | 2.1.0"
"""What is published of D unless a row says otherwise."""

_SYMBOLS = {
    ChangeAction.INSTALL: "+",
    ChangeAction.UPDATE: "^",
    ChangeAction.DOWNGRADE: "v",
    ChangeAction.REMOVE: "-",
    ChangeAction.MARK: "!",
}


def case(
    published: Sequence[str | Mapping[str, Any]],
    installed: Sequence[str],
    request: str,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """
    A case as the recorded ones are.

    Args:
        published: The packages of the repository ``main``; or several repositories.
        installed: The installed packages.
        request: Words such as ``install p@12.2.0``, ``update d``, ``uninstall x``, ``update-all``, with ``;`` between.
        options: As those of the recorded cases.
    """
    repositories: list[dict[str, Any]] = []
    for each in published:
        if isinstance(each, Mapping):
            repositories.append({**each, "packages": dict(map(package, each.get("packages", ())))})
    if not repositories:
        repositories = [{"name": "main", "packages": dict(map(package, published))}]
    return {
        "repositories": repositories,
        "installed": list(map(_installed, installed)),
        "request": request_of(request),
        "options": dict(options or {}),
    }


def package(text: Any) -> tuple[str, dict[str, Any]]:
    head, _, rest = str(text).partition(" ")
    name, _, latest = head.partition("*")
    versions = [_version(each.strip()) for each in re.split(r"\|(?![^\[]*\])", rest)]
    package: dict[str, Any] = {"versions": versions}
    return name, {**package, "latest": latest} if latest else package


def _version(text: str) -> dict[str, Any]:
    version, requires, flags = _parts(text)
    written: dict[str, Any] = {"version": version, "requires": requires}
    if platform := re.search(r"for (\S+)", flags):
        written["platform"] = platform[1]
    return {**written, "yanked": "loses data"} if "yanked" in flags else written


def _parts(text: str) -> tuple[str, list[dict[str, str]], str]:
    match = re.fullmatch(r"(\S+) ?(?:\[(.*)\])?(.*)", text)
    assert match, text
    requires = [_requirement(each.strip()) for each in match[2].split(",")] if match[2] else []
    return match[1], requires, match[3]


def _requirement(text: str) -> dict[str, str]:
    name, _, versions = text.partition(" ")
    return {"name": name, "version": versions} if versions else {"name": name}


def _installed(text: str) -> dict[str, Any]:
    name, _, rest = text.partition(" ")
    version, requires, flags = _parts(rest)
    source = re.search(r"from (\S+)", flags)
    requested = re.search(r"wants (.+)", flags)
    return {
        "name": name,
        "version": version,
        "requires": requires,
        "repository": source[1] if source else "main",
        "origin": "dependency" if "auto" in flags else "manual",
        "pinned": "pinned" in flags,
        "suspended": "suspended" in flags,
        **({"requested": requested[1]} if requested else {}),
    }


def request_of(text: str) -> dict[str, Any]:
    """A request as the recorded cases have it, from words as for ``case``."""
    request: dict[str, Any] = {}
    for part in text.split(";"):
        verb, *names = part.split()
        if verb == "update-all":
            request["update_all"] = True
        for each in names:
            name, _, version = each.partition("@")
            repository, _, name = name.rpartition("/")
            written = {"name": name, **({"version": version} if version else {})}
            written |= {"repository": repository} if repository else {}
            request.setdefault(verb, []).append(name if verb == "uninstall" else written)
    return request


def as_text(answer: Resolution | Conflict) -> list[str]:
    """
    An answer as lines.

    Changes are one line, then come lines for packages that are held back, and for warnings. A conflict is ``R`` or
    ``N`` and its code, then suggestions, then the names in its facts.
    """
    if isinstance(answer, Resolution):
        lines = [_changes(answer.changes)]
        lines += [f"held back: {' '.join(each.name for each in answer.held_back)}"] if answer.held_back else []
        return lines + [
            " ".join(filter(None, (each.code.value, each.package, each.dependency, each.repository)))
            for each in answer.warnings
        ]
    lines = [f"{'R' if answer.resolvable else 'N'} {answer.code.value}"]
    lines += [f"{each.kind.value}: {_changes(each.changes)}" for each in answer.suggestions]
    names = sorted({name for fact in answer.facts for name in fact.packages})
    return [*lines, f"facts: {' '.join(names)}"]


def _changes(changes: Sequence[Change]) -> str:
    return ", ".join(
        f"{_SYMBOLS[change.action]}{change.name}{f' {change.new}' if change.new else ''}" for change in changes
    )
