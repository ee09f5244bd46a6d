"""Reads bodies in YAML that have the same members as bodies in JSON."""

import math
from typing import Any, ClassVar

import yaml

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.kinds.format.scalars import MERGE, plain_scalar
from services.kinds.format.timestamp import Timestamp

DEEPEST = 100
"""Most levels of nested lists and mappings."""

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BASE):  # type: ignore[misc]
    """Reads scalars as the parser reads them in packages, as PyYAML has the rules of YAML 1.1."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


def _scalar(loader: Any, node: yaml.ScalarNode) -> Any:
    """
    The value of a scalar; dates are texts, as in JSON.

    Raises:
        ValueError: JSON has no such number.
    """
    text = str(node.value)
    value = text if node.style else plain_scalar(text)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"line {node.start_mark.line + 1} has {text}, and JSON has no such number; quote it")
    return text if value is MERGE or isinstance(value, Timestamp) else value


_Loader.add_constructor("tag:yaml.org,2002:str", _scalar)


def decoded_yaml(body: bytes) -> Any:
    """
    Read a body as YAML.

    Raises:
        Problem: It is no YAML, or has a construct that JSON does not have.
    """
    if not body.strip():
        raise Problem(Code.INVALID, "the body is empty; send a YAML mapping")
    try:
        text = body.decode()
        _refuse_more_than_json(text)
        value = yaml.load(text, _Loader)  # noqa: S506 - the loader is a safe one
    except (UnicodeDecodeError, yaml.YAMLError, ValueError) as error:
        raise Problem(Code.INVALID, f"the body is no YAML: {' '.join(str(error).split())}") from None
    _refuse_other_keys(value)
    return value


def _refuse_more_than_json(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise Problem(Code.INVALID, f"line {line} of the body: aliases and tags are not supported")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise Problem(Code.INVALID, f"the body has lists and mappings nested more than {DEEPEST} levels deep")


def _refuse_other_keys(value: Any) -> None:
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_other_keys(each)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise Problem(Code.INVALID, f"the body has the key {str(key)[:60]!r}, which is no text; quote it")
