"""A platform for one run of ``pkger up``: ``--platform eu=URL``, an InfluxDB server."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from services.cli.errors import CommandFailed
from services.drivers.registry import refuse_shared_place
from services.platforms import NAME_RULE, Platform, is_platform_name
from services.rpc.entrances import CannotServe
from services.settings import socket_address

DRIVER = "influxdb"

TOKEN = "PKGER_INFLUXDB_TOKEN"  # noqa: S105
"""The environment variable with the token: a command line is readable for all users of the machine."""

OPTION = "--platform"


def parse_platform(typed: Sequence[str], folder: Path, environ: Mapping[str, str]) -> Platform:
    """
    The platform of the *typed* options, whose driver listens in *folder*.

    No error repeats the text after the name: it may hold a credential.

    Raises:
        CommandFailed: The option is not valid, or there is no token.
    """
    if len(typed) > 1:
        # The token of one server would be sent to all of them.
        raise CommandFailed(
            f"{OPTION} is given {len(typed)} times, and {TOKEN} holds the token of one server; write the other servers"
            " into the platforms file, each with its own token"
        )
    name, equals, url = typed[0].partition("=")
    if not (equals and url):
        raise CommandFailed(f"{OPTION}: write NAME=URL, such as eu=https://influx.example.com:8086")
    if not is_platform_name(name):
        raise CommandFailed(f"{OPTION}: the name {name!r} cannot be used; {NAME_RULE}")
    if not environ.get(TOKEN):
        raise CommandFailed(f"{OPTION} {name}: put the token of the server into {TOKEN}")
    options = {"url": url, "token_variable": TOKEN}
    platform = Platform(name, DRIVER, "", options, OPTION)
    return replace(platform, address=socket_address(folder, platform.service))


def refuse_faulty(platform: Platform, others: Mapping[str, Platform], data: Path) -> None:
    """
    Refuse a platform that clashes with *others*, the platforms of the platforms file.

    Args:
        platform: The platform.
        others: The other platforms, by name.
        data: Folder of the databases.

    Raises:
        CommandFailed: Another platform has its name or its server, or its URL is not valid.
    """
    if platform.name in others:
        raise CommandFailed(
            f"{platform.row}: another platform has that name: {others[platform.name].source or 'the default'}"
        )
    try:
        refuse_shared_place(platform, others.values(), data)
    except CannotServe as error:
        raise CommandFailed(str(error)) from error


def row_of(platform: Platform) -> str:
    """*platform* as a row of a platforms file."""
    row = {"driver": platform.driver, "address": platform.address, "options": dict(platform.options)}
    text: str = yaml.safe_dump({platform.name: row})
    return text
