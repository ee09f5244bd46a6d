"""Reads docker-compose.yml and the Dockerfile as Compose does."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

import yaml

from tests.conftest import ROOT

COMPOSE_FILE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "Dockerfile"

TOKEN = "token"
"""The container that makes the token, and ends."""

_VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|(?P<wrong>))")
_DURATION = re.compile(r"(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?")


@dataclass(frozen=True, slots=True)
class Container:
    """
    The container of one service.

    Attributes:
        name: Name of the service.
        command: Entry point of the image and command of the service.
        environment: Variables that Compose adds to the environment of the image.
        check: Command of the health check.
        check_interval: Seconds between two checks.
        grace: Seconds between SIGTERM and SIGKILL.
        needs: Services that have to be healthy first, beside the container that makes the token.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    check: tuple[str, ...]
    check_interval: float
    grace: float
    needs: tuple[str, ...]


def interpolated(text: str, environ: Mapping[str, str]) -> str:
    """
    *text* with its variables replaced: ``${A}``, ``${A:-default}`` (also for an empty A), ``$$``.

    Raises:
        ValueError: A dollar that begins none of these.
    """

    def value(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        if not found["name"]:
            raise ValueError(f"write $$ for a dollar: {text}")
        return environ.get(found["name"]) or found["default"] or ""

    return _VARIABLE.sub(value, text)


def compose_services(environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The services of docker-compose.yml by name, interpolated."""
    services: dict[str, dict[str, Any]] = _interpolate(yaml.safe_load(COMPOSE_FILE.read_text())["services"], environ)
    return services


def _interpolate(value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _interpolate(item, environ) for key, item in value.items()}
    if isinstance(value, list):
        return [_interpolate(item, environ) for item in value]
    return interpolated(value, environ) if isinstance(value, str) else value


def containers(environ: Mapping[str, str]) -> dict[str, Container]:
    """The containers that serve, started with *environ*; each comes after the containers that it needs."""
    services = compose_services(environ)
    entry_point = tuple(json.loads(instructions("ENTRYPOINT")[-1]))
    order = TopologicalSorter({name: sorted(service.get("depends_on", ())) for name, service in services.items()})
    return {name: _container(name, services[name], entry_point) for name in order.static_order() if name != TOKEN}


def token_command(environ: Mapping[str, str]) -> tuple[Sequence[str], Mapping[str, str]]:
    """The command of the container that makes the token, and its environment."""
    service = compose_services(environ)[TOKEN]
    return service["entrypoint"], service["environment"]


def _container(name: str, service: dict[str, Any], entry_point: tuple[str, ...]) -> Container:
    how, *check = service["healthcheck"]["test"]
    assert how == "CMD"
    return Container(
        name=name,
        command=(*entry_point, *service["command"]),
        environment=service["environment"],
        check=tuple(check),
        check_interval=seconds(service["healthcheck"]["interval"]),
        grace=seconds(service["stop_grace_period"]),
        needs=tuple(sorted(set(service.get("depends_on", ())) - {TOKEN})),
    )


def seconds(duration: str) -> float:
    """A duration such as ``1m30s``."""
    found = _DURATION.fullmatch(duration)
    assert found, duration
    return 60.0 * int(found["minutes"] or 0) + int(found["seconds"] or 0)


def instructions(word: str) -> list[str]:
    """The arguments of all *word* instructions of the Dockerfile, in order; continued lines are joined."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    return [line.removeprefix(word).strip() for line in text.splitlines() if line.startswith(f"{word} ")]
