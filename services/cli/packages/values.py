"""Environment values and secrets from the command line and from files: pairs, JSON values, mappings."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from services.cli.errors import CommandFailed

MOST_BYTES = 1024 * 1024
"""The largest file of values, in bytes."""


def pairs(options: Sequence[str]) -> dict[str, Any]:
    """
    The values by key of options ``KEY=VALUE``, a text, and ``KEY:=JSON``, any JSON value.

    Raises:
        UsageError: An option has neither form.
    """
    env_values: dict[str, Any] = {}
    for option in options:
        key, equals, text = option.partition("=")
        is_json = key.endswith(":")
        key = key.removesuffix(":")
        if not (key and equals):
            raise click.UsageError(
                f"--env-ref {option!r}: write KEY=VALUE, or KEY:=JSON for a number, a list or another JSON value"
            )
        env_values[key] = _json_value(key, text) if is_json else text
    return env_values


def _json_value(key: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise click.UsageError(
            f'--env-ref {key}:={text}: not a JSON value ({error}); a text is written {key}=TEXT or {key}:="TEXT"'
        ) from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def env_files(names: Sequence[str]) -> dict[str, Any]:
    """
    The values by key of files that each hold one mapping, in YAML or JSON; a later file overrides an earlier one.

    Raises:
        CommandFailed: A file cannot be read, or holds something else.
    """
    return {key: value for name in names for key, value in mapping("--env-file", name).items()}


def secret_files(names: Sequence[str]) -> dict[str, str]:
    """
    The secrets by key of files that each hold one mapping of texts. No message has a value.

    Raises:
        CommandFailed: A file cannot be read, or holds something else.
    """
    secrets: dict[str, str] = {}
    for name in names:
        for key, value in mapping("--secret-file", name).items():
            if not (isinstance(value, str) and value):
                raise CommandFailed(
                    f"--secret-file {name}: the value of {key} is not a text, or is empty; write it in quotes"
                )
            secrets[key] = value
    return secrets


def mapping(option: str, name: str) -> Mapping[str, Any]:
    """
    The one mapping that a file holds, in YAML or JSON; *option* names the file in errors.

    Raises:
        CommandFailed: The file cannot be read, or holds something else.
    """
    # The reader for packages reads YAML 1.2, where `on` and `no` are texts. It is imported late, as that takes time.
    from services.core.errors import PkgerError
    from services.syntax.yaml_reader import read_documents

    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise CommandFailed(f"{option} {name}: {error.strerror or error}") from error
    if len(data) > MOST_BYTES:
        raise CommandFailed(f"{option} {name}: has more than {MOST_BYTES // 2**20} MiB")
    try:
        documents = read_documents(name, data.decode())
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{option} {name}: is not UTF-8 text") from error
    except PkgerError as error:
        # The message of the reader may quote the file, which must not happen with secrets.
        line = error.metadata.get("line", "?")
        problem = f"{name}:{line}: is not YAML or JSON" if option == "--secret-file" else str(error)
        raise CommandFailed(f"{option} {problem}") from error
    roots = [root for root in documents if root is not None]
    if len(roots) != 1 or not isinstance(roots[0], dict) or not all(isinstance(key, str) for key in roots[0]):
        raise CommandFailed(
            f"{option} {name}: must hold one mapping of keys to values; a key that is a number needs quotes"
        )
    return roots[0]


def yaml_value(option: str, text: str) -> Any:
    """
    The value of *text* as YAML.

    Raises:
        CommandFailed: The text is not YAML; *option* names it.
    """
    from services.core.errors import PkgerError
    from services.syntax.yaml_reader import read_documents

    try:
        [value] = read_documents(option, text)
    except (PkgerError, ValueError):
        raise CommandFailed(f"{option}: the value is not YAML") from None
    return value
