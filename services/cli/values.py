"""Environment values and secrets from the command line and from files: pairs, JSON values, mappings."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from services.cli.errors import Failed

MOST_BYTES = 1024 * 1024
"""Of a file of values."""


def pairs(options: Sequence[str]) -> dict[str, Any]:
    """
    The values by key of options ``KEY=VALUE``, which are texts, and ``KEY:=JSON``, which are any JSON value.

    Raises:
        UsageError: An option is neither.
    """
    found: dict[str, Any] = {}
    for option in options:
        key, equals, text = option.partition("=")
        is_json = key.endswith(":")
        key = key.removesuffix(":")
        if not (key and equals):
            raise click.UsageError(
                f"--env-ref {option!r}: write KEY=VALUE, or KEY:=JSON for a number, a list and so on"
            )
        found[key] = _json_value(key, text) if is_json else text
    return found


def _json_value(key: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise click.UsageError(
            f'--env-ref {key}:={text}: no JSON value ({error}); a text is written {key}=TEXT or {key}:="TEXT"'
        ) from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


def env_files(names: Sequence[str]) -> dict[str, Any]:
    """
    The values by key of files that each hold one mapping, in YAML or JSON; of a key that is there twice, the last one.

    Raises:
        Failed: A file cannot be read, or holds something else.
    """
    return {key: value for name in names for key, value in mapping("--env-file", name).items()}


def secret_files(names: Sequence[str]) -> dict[str, str]:
    """
    The secrets by key of files that each hold one mapping of texts. No value is ever told.

    Raises:
        Failed: A file cannot be read, or holds something else.
    """
    found: dict[str, str] = {}
    for name in names:
        for key, value in mapping("--secret-file", name).items():
            if not (isinstance(value, str) and value):
                raise Failed(f"--secret-file {name}: the value of {key} is no text, or empty; write it in quotes")
            found[key] = value
    return found


def mapping(option: str, name: str) -> Mapping[str, Any]:
    """
    What a file holds that is one mapping, in YAML or JSON; *option* names the file in errors.

    Raises:
        Failed: It cannot be read, or holds something else.
    """
    # A parser of packages knows YAML 1.2, where `on` and `no` are texts; importing it takes a moment.
    from parser_svc.yaml_reader import read_documents
    from services.core.errors import PkgerError

    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise Failed(f"{option} {name}: {error.strerror or error}") from error
    if len(data) > MOST_BYTES:
        raise Failed(f"{option} {name}: has more than {MOST_BYTES // 2**20} MiB")
    try:
        documents = read_documents(name, data.decode())
    except UnicodeDecodeError as error:
        raise Failed(f"{option} {name}: is no UTF-8 text") from error
    except PkgerError as error:
        # Of a file of secrets, not even a piece is told.
        told = (
            str(error) if option != "--secret-file" else f"{name}:{error.metadata.get('line', '?')}: is no YAML or JSON"
        )
        raise Failed(f"{option} {told}") from error
    roots = [root for root in documents if root is not None]
    if len(roots) != 1 or not isinstance(roots[0], dict) or not all(isinstance(key, str) for key in roots[0]):
        raise Failed(
            f"{option} {name}: must hold one mapping, from keys to values; a key that is a number needs quotes"
        )
    return roots[0]


def yaml_value(what: str, text: str) -> Any:
    """
    The value that *text* is in YAML.

    Raises:
        Failed: It is none; *what* names it.
    """
    from parser_svc.yaml_reader import read_documents
    from services.core.errors import PkgerError

    try:
        [value] = read_documents(what, text)
    except (PkgerError, ValueError):
        raise Failed(f"{what}: the value is no YAML") from None
    return value
