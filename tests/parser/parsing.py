"""Helpers of the parser tests that write packages and read responses."""

import re
from collections.abc import Mapping
from typing import Any, cast

import orjson

from parser_svc.package import ParseOptions, ParseResult, parse
from parser_svc.sources import Encoding, Source
from services.core.model import Edit, Object


def document(kind: str, spec: str = "", name: str = "thing", version: str = "v2alpha1") -> str:
    """One YAML document; *spec* is indented YAML, and begins in line 6."""
    head = f"apiVersion: influxdata.com/{version}\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n"
    return head + "".join(f"  {line}\n" for line in spec.splitlines())


def parse_text(
    text: str, env: Mapping[str, Any] | None = None, encoding: Encoding = Encoding.YAML, **options: bool
) -> ParseResult:
    """Parse one source; *options* are those of ``ParseOptions``."""
    return parse([Source("a.yml", text, encoding)], env or {}, ParseOptions(**options))


def places(text: str, env: Mapping[str, Any] | None = None, encoding: Encoding = Encoding.YAML) -> list[str]:
    """``path@line:column`` of each violation."""
    return [
        f"{violation.path}@{violation.location.line}:{violation.location.column}"
        for violation in parse_text(text, env, encoding).violations
    ]


def reasons(text: str, env: Mapping[str, Any] | None = None) -> list[str]:
    return [violation.reason for violation in parse_text(text, env).violations]


def objects(text: str, env: Mapping[str, Any] | None = None, encoding: Encoding = Encoding.YAML) -> tuple[Object, ...]:
    """The objects of a valid package."""
    parsed = parse_text(text, env, encoding)
    assert parsed.violations == ()
    assert parsed.package is not None
    return parsed.package.objects


def spec(text: str, env: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """The normalised spec of the one object of a valid package."""
    [item] = objects(text, env)
    return cast(Mapping[str, Any], orjson.loads(item.spec.text))


def warnings(text: str) -> list[str]:
    """``path@line:column: reason`` of each warning of a package, valid or not."""
    return [
        f"{warning.path}@{warning.location.line}:{warning.location.column}: {warning.reason}"
        for warning in parse_text(text).warnings
    ]


def edited(text: str, edit: Edit) -> str:
    """*text* after an edit."""
    assert edit.end.line == edit.location.line
    lines = re.split("(\n|\r\n?)", text)
    line = lines[2 * edit.location.line - 2]
    lines[2 * edit.location.line - 2] = line[: edit.location.column - 1] + edit.text + line[edit.end.column - 1 :]
    return "".join(lines)
