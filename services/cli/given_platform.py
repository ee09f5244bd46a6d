"""A platform that is typed for one run: ``--platform eu=URL``, a server of InfluxDB."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from services.cli.errors import Failed
from services.drivers.registry import refuse_shared_place
from services.platforms import NAME_RULE, Platform, is_platform_name
from services.rpc.process import CannotServe

DRIVER = "influxdb"

TOKEN = "PKGER_INFLUXDB_TOKEN"  # noqa: S105
"""The environment variable that has the token: on a command line everybody on the machine could read it."""

OPTION = "--platform"


def given_platform(typed: Sequence[str], folder: Path, environ: Mapping[str, str]) -> Platform:
    """
    The platform that is *typed*, whose driver is to listen in *folder*.

    No error repeats what is typed behind the name: it may hold a credential all the same.

    Raises:
        Failed: It cannot be a platform, or there is no token.
    """
    if len(typed) > 1:
        # The token of one server would be sent to all of them.
        raise Failed(
            f"{OPTION} stands {len(typed)} times, and {TOKEN} has the token of one server; write the others into the"
            " platforms file, each with a token of its own"
        )
    name, equals, url = typed[0].partition("=")
    if not (equals and url):
        raise Failed(f"{OPTION}: write NAME=URL, such as eu=https://influx.example.com:8086")
    if not is_platform_name(name):
        raise Failed(f"{OPTION}: the name {name!r} cannot be used; {NAME_RULE}")
    if not environ.get(TOKEN):
        raise Failed(f"{OPTION} {name}: put the token of the server into {TOKEN}")
    options = {"url": url, "token_variable": TOKEN}
    return Platform(name, DRIVER, f"unix:{folder / 'platform.sock'}", options, OPTION)


def refuse_faulty(given: Platform, others: Mapping[str, Platform], data: Path) -> None:
    """
    Refuse a platform that cannot be beside *others*, those of the platforms file; *data*: folder of the databases.

    Raises:
        Failed: Its name or its server is that of another one, or its URL is none.
    """
    if given.name in others:
        raise Failed(
            f"{given.row}: there is a platform of that name already: {others[given.name].source or 'the default'}"
        )
    try:
        refuse_shared_place(given, others.values(), data)
    except CannotServe as error:
        raise Failed(str(error)) from error


def row_of(given: Platform) -> str:
    """The row of the platforms file that says the same."""
    row = {"driver": given.driver, "address": given.address, "options": dict(given.options)}
    text: str = yaml.safe_dump({given.name: row})
    return text
