"""The platforms file: its rows, and the report of every problem in it."""

from pathlib import Path

import pytest

from services.core.errors import PlatformUnknown
from services.platforms import Platform, PlatformsInvalid, find_platform, read_platforms
from services.settings import Settings, load

DRIVERS = ("embedded", "influxdb")

CANARY = "canary-8a1f"


def settings(folder: Path, text: str | None = None, **more: str) -> Settings:
    """Settings whose home has a platforms file with *text*, if there is one."""
    if text is not None:
        (folder / "platforms.yml").write_text(text)
    return load({"PKGER_HOME": str(folder), **more})


def problems(folder: Path, text: str) -> list[str]:
    """The problems in a file with *text*, without its path."""
    with pytest.raises(PlatformsInvalid) as raised:
        read_platforms(settings(folder, text), DRIVERS)
    return str(raised.value).replace(f"Error: {folder}/platforms.yml:", "").splitlines()


def test_without_a_file_there_is_one_embedded_platform_at_the_configured_address(tmp_path: Path) -> None:
    [platform] = read_platforms(settings(tmp_path, PKGER_PLATFORM_ADDRESS="unix:/p"), DRIVERS).values()
    assert platform == Platform("embedded", "embedded", "unix:/p")
    [platform] = read_platforms(settings(tmp_path, PKGER_RUN="/s"), DRIVERS).values()
    assert platform == Platform("embedded", "embedded", "unix:/s/platform.sock")


def test_rows_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        "lab: {driver: embedded, address: '127.0.0.1:7', options: {file: lab.db, n: 1, on: true}}\n"
        "embedded:\n"
        "  driver: embedded\n"
        "far: {address: 'far.example.com:50055'}\n"
        "v6: {address: '[::1]:7'}\n"
    )
    file = f"{tmp_path}/platforms.yml"
    assert list(read_platforms(settings(tmp_path, text, PKGER_SERVER="here"), DRIVERS).values()) == [
        Platform("lab", "embedded", "127.0.0.1:7", {"file": "lab.db", "n": 1, "on": True}, f"{file}:1"),
        Platform("embedded", "embedded", "here:50055", {}, f"{file}:2"),
        Platform("far", "", "far.example.com:50055", {}, f"{file}:4"),
        Platform("v6", "", "[::1]:7", {}, f"{file}:5"),
    ]


@pytest.mark.parametrize("address", [f"unix:/{'p' * 106}", f"unix:/{'ä' * 53}"])
def test_a_socket_may_have_the_longest_path_of_the_system(tmp_path: Path, address: str) -> None:
    assert find_platform(read_platforms(settings(tmp_path, f"lab: {{address: '{address}'}}")), "lab").address == address


def test_a_variable_names_another_file(tmp_path: Path) -> None:
    (tmp_path / "other.yml").write_text("lab: {address: 'unix:/lab'}")
    named = settings(tmp_path, "embedded: {}", PKGER_PLATFORMS=str(tmp_path / "other.yml"))
    assert list(read_platforms(named)) == ["lab"]


def test_drivers_that_run_here_are_at_their_sockets_unless_services_have_addresses(tmp_path: Path) -> None:
    text = "embedded: {driver: embedded}\nlab: {driver: embedded, address: 'lab:1'}\nfar: {address: 'far:1'}"
    platforms = read_platforms(settings(tmp_path, text, PKGER_RUN="/s"))
    assert {name: platform.address for name, platform in platforms.items()} == {
        "embedded": "unix:/s/platform.sock",
        "lab": "unix:/s/platform-lab.sock",
        "far": "far:1",
    }
    elsewhere = read_platforms(settings(tmp_path, text, PKGER_RUN="/s", PKGER_STACK_ADDRESS="stack:1"))
    assert {name: platform.address for name, platform in elsewhere.items()} == {
        "embedded": "unix:/s/platform.sock",
        "lab": "lab:1",
        "far": "far:1",
    }


def test_a_process_without_drivers_accepts_any_driver(tmp_path: Path) -> None:
    """A planner from one image connects to drivers of another."""
    platforms = read_platforms(settings(tmp_path, "far: {driver: new, address: 'far:1'}", PKGER_SERVER="far"))
    assert find_platform(platforms, "far").address == "far:1"


ROW = "address: 'a:1'"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("\n: [", ["2: the file is no YAML: expected <block end>, but found ':'"]),
        ("a: \x00", [" the file is no YAML"]),
        ("[" * 700, [" the file is no YAML"]),
        ("---\na: 1\n---\nb: 1", ["3: the file is no YAML: but found another document"]),
        ("", [" the file names no platform; write a row for each, NAME: {driver: DRIVER, address: ADDRESS}"]),
        ("{}", [" the file names no platform; write a row for each, NAME: {driver: DRIVER, address: ADDRESS}"]),
        ("- lab", [" the file names no platform; write a row for each, NAME: {driver: DRIVER, address: ADDRESS}"]),
        (
            f"Lab: {{{ROW}}}",
            [
                "1: platform 'Lab': the name cannot be used; write up to 40 lower-case letters, digits, - and _, the"
                " first a letter or digit"
            ],
        ),
        (
            f"[1]: {{{ROW}}}",
            [
                "1: platform '': the name cannot be used; write up to 40 lower-case letters, digits, - and _, the"
                " first a letter or digit"
            ],
        ),
        (
            f"lab: {{{ROW}}}\n\nlab: {{address: 'a:2'}}",
            ["3: platform lab: the name is already in line 1; a platform has one row"],
        ),
        (
            "lab:",
            ["1: platform lab: the row is no mapping; write driver, address and options below the name"],
        ),
        (
            f"lab:\n  {ROW}\n  adress: x",
            ["3: platform lab: unknown key 'adress'; write driver, address, options"],
        ),
        (f"lab:\n  {ROW}\n  address: 'a:2'", ["3: platform lab: address is given twice; write it once"]),
        (
            "lab: {driver: embedded}",
            ["1: platform lab: address is missing; write host:port or unix:/path of its driver"],
        ),
        *(
            (
                f"lab: {{address: '{address}'}}",
                [f"1: platform lab: the address '{address}' cannot be used; write host:port or unix:/path"],
            )
            for address in ("", "lab", "lab:", ":1", "lab:0", "lab:65536", "http://lab:1", "a b:1")
        ),
        (
            "lab: {address: '::1:7'}",
            [
                "1: platform lab: the address '::1:7' cannot be used; write an address of IPv6 in brackets, such as"
                " [::1]:7"
            ],
        ),
        *(
            (
                f"lab: {{address: '{address}'}}",
                [
                    f"1: platform lab: the address '{address}' cannot be used; write unix: and the full path of a"
                    " socket, such as unix:/run/parser.sock"
                ],
            )
            for address in ("unix:", "unix:lab.sock")
        ),
        *(
            (
                f"lab: {{address: 'unix:{path}'}}",
                [
                    f"1: platform lab: the address 'unix:{path}' cannot be used; write a shorter path, as this one"
                    " has 108 bytes, and that of a socket at most 107"
                ],
            )
            for path in ("/" + "p" * 107, "/p" + "ä" * 53, "//" + "p" * 106)
        ),
        (
            "lab: {address: [1]}",
            ["1: platform lab: the address '' cannot be used; write host:port or unix:/path"],
        ),
        (
            "lab: {address: 'a:1'}\nfar:\n  address: a:1",
            ["3: platform far: a:1 is already the address of platform lab; choose another one"],
        ),
        (
            "embedded: {driver: embedded, address: '127.0.0.1:50055'}\nlab: {address: '127.0.0.1:50055'}",
            ["2: platform lab: 127.0.0.1:50055 is already the address of platform embedded; choose another one"],
        ),
        (
            f"lab: {{{ROW}, driver: influx}}",
            ["1: platform lab: there is no driver 'influx'; drivers are embedded, influxdb"],
        ),
        (
            f"lab: {{{ROW}, driver: }}",
            ["1: platform lab: driver is not a name; leave it out for a driver that is not run here"],
        ),
        (
            f"lab: {{{ROW}, driver: embedded, options: [a]}}",
            ["1: platform lab: options is no mapping; write names and values below it"],
        ),
        (
            f"lab: {{{ROW}, options: {{file: a}}}}",
            ["1: platform lab: options are for a driver that runs here; name the driver, or leave them out"],
        ),
        (
            f"lab:\n  {ROW}\n  driver: embedded\n  options:\n    file: a\n    file: b\n    ? [x]\n    : 1",
            [
                "6: platform lab: option 'file' is given twice; write it once",
                "7: platform lab: the name of an option is no text",
            ],
        ),
        (
            f"lab: {{{ROW}, driver: embedded, options: {{token: !!python/name:os.system '{CANARY}'}}}}",
            ["1: platform lab: option 'token' is no text, number, switch, list or mapping"],
        ),
        (
            "lab: {driver: influx}\nfar: {addres: x}\n",
            [
                "1: platform lab: address is missing; write host:port or unix:/path of its driver",
                "1: platform lab: there is no driver 'influx'; drivers are embedded, influxdb",
                "2: platform far: address is missing; write host:port or unix:/path of its driver",
                "2: platform far: unknown key 'addres'; write driver, address, options",
            ],
        ),
    ],
)
def test_every_problem_is_reported_with_its_line_and_a_remedy(tmp_path: Path, text: str, printed: list[str]) -> None:
    assert problems(tmp_path, text) == printed


def test_a_configured_but_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PlatformsInvalid) as raised:
        read_platforms(settings(tmp_path, PKGER_PLATFORMS=f"{tmp_path}/none.yml"))
    assert str(raised.value) == f"Error: PKGER_PLATFORMS={tmp_path}/none.yml: there is no such file"


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "platforms.yml").write_bytes(b"lab: \xff")
    with pytest.raises(PlatformsInvalid, match=r"cannot be read: it is not UTF-8 text$"):
        read_platforms(settings(tmp_path))
    (tmp_path / "platforms.yml").unlink()
    (tmp_path / "platforms.yml").mkdir()
    with pytest.raises(PlatformsInvalid, match=r"cannot be read: Is a directory$"):
        read_platforms(settings(tmp_path))


def test_an_unknown_platform_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    platforms = read_platforms(settings(tmp_path, "lab: {address: 'a:1'}\nfar: {address: 'b:1'}"))
    with pytest.raises(PlatformUnknown) as raised:
        find_platform(platforms, "embedded")
    assert str(raised.value) == "no platform 'embedded' is configured; configured are: far, lab"
    assert raised.value.metadata == {"platform": "embedded", "platforms": "far,lab"}


MORE = "eu: {driver: influxdb, address: 'unix:/eu', options: {url: 'http://host'}}"


def test_rows_of_the_environment_follow_those_of_the_file(tmp_path: Path) -> None:
    found = read_platforms(
        settings(tmp_path, "lab: {address: 'unix:/lab'}", PKGER_MORE_PLATFORMS=MORE, PKGER_SERVER="a"), DRIVERS
    )
    assert list(found) == ["lab", "eu"]
    assert found["eu"] == Platform("eu", "influxdb", "unix:/eu", {"url": "http://host"}, "PKGER_MORE_PLATFORMS:1")


@pytest.mark.parametrize(
    ("file", "more", "problem"),
    [
        ("eu: {address: 'unix:/lab'}", MORE, "{file}:1 already has a platform with this name"),
        ("lab: {address: 'unix:/eu'}", MORE, "unix:/eu is already the address of platform lab"),
        ("lab: {address: 'unix:/lab'}", "eu: {driver: moon, address: 'unix:/eu'}", "there is no driver 'moon'"),
    ],
)
def test_rows_of_the_environment_follow_the_same_rules(tmp_path: Path, file: str, more: str, problem: str) -> None:
    with pytest.raises(PlatformsInvalid) as raised:
        read_platforms(settings(tmp_path, file, PKGER_MORE_PLATFORMS=more), DRIVERS)
    assert str(raised.value).startswith("Error: PKGER_MORE_PLATFORMS:1: platform eu: ")
    assert problem.format(file=tmp_path / "platforms.yml") in str(raised.value)
