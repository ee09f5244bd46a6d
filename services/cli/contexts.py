"""Contexts: a server, the file of its token and a target under one name, in ``config.yml`` of ``PKGER_HOME``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from services.cli.errors import CommandFailed
from services.private_files import PathRefused, open_private, private_folder

_FIELDS = ("server", "target", "token_file")


def in_use(home: Path) -> Mapping[str, str]:
    """
    The fields of the context in use; without a key for one that it does not set.

    Raises:
        UsageError: The file cannot be read, or does not hold contexts.
    """
    config = _read(home)
    context: Mapping[str, str] = config["contexts"].get(config["current"], {})
    return context


def contexts(home: Path) -> list[dict[str, Any]]:
    """All contexts as data, by name."""
    config = _read(home)
    return [
        {"name": name, "current": name == config["current"], **{field: context.get(field, "") for field in _FIELDS}}
        for name, context in sorted(config["contexts"].items())
    ]


def use(home: Path, name: str) -> None:
    """
    Make a context the one in use; an empty name: none.

    Raises:
        CommandFailed: There is no context of that name.
    """
    config = _read(home)
    if name and name not in config["contexts"]:
        names = ", ".join(sorted(config["contexts"])) or "none"
        raise CommandFailed(f"there is no context {name!r}; there are: {names}; `pkger config set {name}` creates it")
    _write(home, {**config, "current": name})


def change(home: Path, name: str, fields: Mapping[str, str]) -> None:
    """Create a context, or change the *fields* of one; an empty text removes a field."""
    if not name or not name.isprintable():
        raise CommandFailed("the name of a context is empty, or has characters that cannot be printed")
    config = _read(home)
    context = {**config["contexts"].get(name, {}), **fields}
    contexts = {**config["contexts"], name: {field: value for field, value in context.items() if value}}
    _write(home, {**config, "contexts": contexts})


def _read(home: Path) -> dict[str, Any]:
    path = home / "config.yml"
    try:
        with open(path, encoding="utf-8", opener=open_private) as file:
            config = yaml.safe_load(file) or {}
    except FileNotFoundError:
        config = {}
    except PathRefused as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        raise click.UsageError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    contexts = config.get("contexts", {}) if isinstance(config, dict) else None
    if not isinstance(contexts, dict) or not all(
        isinstance(name, str)
        and isinstance(context, dict)
        and all(key in _FIELDS and isinstance(value, str) for key, value in context.items())
        for name, context in contexts.items()
    ):
        raise click.UsageError(
            f"{path}: contexts must map names to server, target and token_file; `pkger config set` writes them"
        )
    current = config.get("current", "")
    return {"current": current if isinstance(current, str) else "", "contexts": contexts}


def _write(home: Path, config: Mapping[str, Any]) -> None:
    """Replace the file atomically; only its owner may read it."""
    path, new = home / "config.yml", home / "config.yml.new"
    try:
        private_folder(home)
        with open(new, "w", encoding="utf-8", opener=open_private) as file:
            yaml.safe_dump(dict(config), file, sort_keys=True)
        new.replace(path)
    except PathRefused as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror or error}") from error
