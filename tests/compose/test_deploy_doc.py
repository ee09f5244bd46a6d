"""docs/deploy.md lists the variables that the code reads, with their defaults."""

import os
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from services.gateway.settings import load_gateway
from services.settings import PORTS, Bounds, Keep, address_variable, load
from tests.compose.compose_file import COMPOSE_FILE, compose_services, instructions, seconds
from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "deploy.md").read_text()
DEFAULTS = dict(re.findall(r"^\| `(PKGER_\w+)` \| `?(.*?)`? \|", TEXT, re.MULTILINE))
"""The table: variables and their defaults."""


class RecordingEnvironment(Mapping[str, str]):
    """An empty environment that records the names of the variables that are read."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_the_table_has_every_variable_that_is_read() -> None:
    environ = RecordingEnvironment()
    load(environ)
    load_gateway(environ)
    assert set(DEFAULTS) == environ.names


def test_the_table_has_the_defaults_of_the_code() -> None:
    settings = load({})
    for name in PORTS:
        assert DEFAULTS[address_variable(name)].replace("PKGER_RUN", str(settings.run)) == settings.addresses[name]
    assert load({"PKGER_SERVER": DEFAULTS["PKGER_SERVER"]}) == settings
    assert DEFAULTS["PKGER_RUN"] == "PKGER_HOME/run"
    assert settings.run == settings.home / "run"
    assert settings.listen_addresses("http") == (f"unix:{settings.run}/http.sock", DEFAULTS["PKGER_HTTP_ADDRESS"])
    assert DEFAULTS["PKGER_DATA"] == "PKGER_HOME"
    assert settings.data == settings.home == Path(DEFAULTS["PKGER_HOME"]).expanduser()
    assert DEFAULTS["PKGER_HOLDER"] == "host name and process id"
    assert settings.holder == f"{socket.gethostname()}/{os.getpid()}"
    assert load({"PKGER_HOLDER": "applier-1"}).holder == "applier-1"


def test_the_text_agrees_with_the_files() -> None:
    services = compose_services({})
    (grace,) = {seconds(service["stop_grace_period"]) for service in services.values()}
    (user,) = {service["user"].partition(":")[0] for service in services.values()}
    assert f"{grace:.0f} seconds" in TEXT.replace("\n", " ")
    assert f"user {user}" in TEXT
    assert any("PKGER_DATA=/data" in line.split() for line in instructions("ENV"))


def test_the_compose_file_reads_the_variables_of_the_text() -> None:
    wanted = {f"{name.upper()}_{what}" for name in PORTS for what in ("PORT", "LISTEN", "ADDRESS")} - {"PLATFORM_PORT"}
    wanted |= {f"HTTP_{what}" for what in ("PORT", "LISTEN", "TOKENS", "ORGS", "HOSTS", "ORIGINS", "BASE_PATH")}
    wanted |= {
        "TOKEN_FOLDER",
        "STACK_DATA",
        "PLATFORM_DATA",
        "ALLOW_JSONNET",
        "ALLOW_PRIVATE_ADDRESSES",
        "DOCUMENT_CACHE",
    }
    wanted |= {f"MAX_{field.name.upper()}" for field in fields(Bounds)}
    wanted |= {f"KEEP_{field.name.upper()}" for field in fields(Keep)}
    assert set(re.findall(r"\$\{(\w+)", COMPOSE_FILE.read_text())) == wanted


def test_files_that_the_text_names_are_there() -> None:
    named = re.findall(r"`((?:services|docker)[\w./-]*\.(?:py|yml))`", TEXT)
    assert len(named) >= 3
    assert all((ROOT / name).is_file() for name in named)
