"""
The options of an InfluxDB platform: they name the file or variable of the token; no error message prints the token.
"""

from pathlib import Path
from typing import Any

import pytest

from services.drivers.influxdb.driver import place_of
from services.drivers.influxdb.options import InfluxdbOptions, options_of, place, token_of
from services.drivers.options import OptionsInvalid
from services.drivers.registry import opened
from services.platforms import Platform
from services.rpc.entrances import CannotServe

URL = "https://influx.example.com"


def row(**options: Any) -> Platform:
    return Platform("eu", "influxdb", "127.0.0.1:1", options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "'url' is missing"),
        ({"url": URL}, "'token_file' and 'token_variable'"),
        ({"url": URL, "token_file": "a", "token_variable": "B"}, "'token_file' and 'token_variable'"),
        ({"url": URL, "token": "canary"}, "unknown option 'token'"),
        ({"url": "influx.example.com", "token_file": "a"}, "is no URL"),
        ({"url": "ftp://influx.example.com", "token_file": "a"}, "is no URL"),
        ({"url": "http://[", "token_file": "a"}, "is no URL"),
        ({"url": "http://influx:99999", "token_file": "a"}, "is no URL"),
        ({"url": "http://user:canary@influx", "token_file": "a"}, "holds a credential"),
        ({"url": f"{URL}?token=canary", "token_file": "a"}, "has a query or fragment"),
        ({"url": URL, "token_file": "a", "verify": False, "ca_file": "b"}, "has no effect"),
        ({"url": URL, "token_file": "a", "verify": "no"}, "'verify'"),
    ],
)
def test_problems_are_reported_without_values(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionsInvalid, match=problem) as caught:
        options_of(row(**options))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("http://Influx.Example.com/", "http://influx.example.com:80"),
        ("https://influx.example.com.", "https://influx.example.com:443"),
        ("http://[::1]:8086/base/", "http://[::1]:8086/base"),
    ],
)
def test_one_server_is_one_place(url: str, same: str) -> None:
    assert place(url) == place(same) == same == place_of(row(url=url, token_file="a"), Path())


@pytest.mark.parametrize("text", ["", " \n", "two words", "line\nbreak-canary", "ü"])
def test_an_invalid_token_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    for options in (InfluxdbOptions(URL, token_file="token"), InfluxdbOptions(URL, token_variable="TOKEN")):
        with pytest.raises(OptionsInvalid) as caught:
            token_of(row(), options, tmp_path, {"TOKEN": text})
        assert "canary" not in str(caught.value)


def test_a_token_comes_from_a_file_or_a_variable(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc==\n")
    assert token_of(row(), InfluxdbOptions(URL, token_file="token"), tmp_path, {}) == "abc=="
    assert token_of(row(), InfluxdbOptions(URL, token_variable="TOKEN"), tmp_path, {"TOKEN": "abc=="}) == "abc=="


@pytest.mark.parametrize("options", [{"token_file": "nowhere"}, {"token_file": "token", "ca_file": "token"}])
async def test_a_driver_that_lacks_a_file_does_not_start(tmp_path: Path, options: dict[str, str]) -> None:
    (tmp_path / "token").write_text("abc")
    with pytest.raises(CannotServe):
        async with opened(row(url=URL, **options), tmp_path):
            pass


async def test_a_driver_starts_while_its_server_is_down(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc")
    async with opened(row(url="http://127.0.0.1:1", token_file="token"), tmp_path):
        pass
