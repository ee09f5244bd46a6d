"""Access control: tokens, origins of pages, names of the server, and its address."""

import hashlib
from pathlib import Path

import pytest

from services.access.token_file import home_token
from services.core.model import Target
from services.gateway.credentials import Tokens, TokensInvalid, read_rows
from services.gateway.entrances import http_entrances
from services.gateway.errors import Problem
from services.gateway.origins import OriginRules
from services.gateway.settings import load_gateway
from services.rpc.entrances import CannotServe
from services.settings import SettingInvalid, load


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Token one", "first"),
        ("token one", "first"),
        ("BEARER two", "second"),
        ("Bearer  two ", "second"),
        ("Token three", None),
        ("Token", None),
        ("Token ", None),
        ("one", None),
        ("Basic b25lOnR3bw==", None),
        ("", None),
        (None, None),
        ("Token \udcff", None),
    ],
)
def test_a_token_has_a_name(tmp_path: Path, header: str | None, name: str | None) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# ours\n\nfirst {digest('one')}\nsecond  {digest('two').upper()}\n")
    found = Tokens(read_rows(file)).principal([] if header is None else [header])
    if name:
        assert found == name
    else:
        assert isinstance(found, Problem)
        assert (found.status, found.code) == (401, "unauthorized")
        assert "three" not in found.message


def test_several_headers_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"first {digest('one')}\n")
    assert isinstance(Tokens(read_rows(file)).principal(["Token one", "Token one"]), Problem)
    problem = RULES.problem("GET", {"Host": "localhost"}, ["http://localhost", "http://evil.example.com"])
    assert problem
    assert problem.status == 403


def test_a_socket_needs_no_token() -> None:
    assert [Tokens(are_needed=False).principal(headers) for headers in ([], ["Token x"], ["Basic x"])] == ["local"] * 3


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "name\n", "name 12ab\n", f"a b {digest('x')}\n", f"a {digest('x')}\na {digest('y')}\n"]
)
def test_an_invalid_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(TokensInvalid, match="tokens"):
        read_rows(file)


def test_a_file_that_everybody_may_change_is_refused(tmp_path: Path) -> None:
    """Any user of the machine could add a token."""
    file = tmp_path / "tokens"
    file.write_text(f"ci {digest('x')}\n")
    file.chmod(0o666)
    with pytest.raises(TokensInvalid, match="every user of this machine may change"):
        read_rows(file)
    file.chmod(0o664)
    assert read_rows(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TokensInvalid, match="cannot read"):
        read_rows(tmp_path / "nothing")


RULES = OriginRules(origins=("https://console.example.com",), hosts=("gateway", "gate:8086"), checks_hosts=True)


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Host": "localhost:8086"}, None),
        ("POST", {"Host": "127.0.0.1:8086"}, None),
        ("POST", {"Host": "[::1]:8086"}, None),
        ("POST", {"Host": "a.localhost"}, None),
        ("POST", {"Host": "GATEWAY:1"}, None),
        ("POST", {"Host": "gate:8086"}, None),
        ("POST", {"Host": "gate:1"}, 421),
        ("POST", {"Host": "evil.example.com"}, 421),
        ("POST", {"Host": "127.0.0.1.evil.example.com"}, 421),
        ("POST", {"Host": "["}, 421),
        ("GET", {}, 421),
        # DNS rebinding: another name for this address is refused, though the page has the same origin.
        ("POST", {"Host": "evil.example.com", "Origin": "http://evil.example.com"}, 421),
        ("POST", {"Host": "localhost:8086", "Origin": "http://localhost:8086"}, None),
        ("POST", {"Host": "localhost:8086", "Origin": "https://console.example.com"}, None),
        (
            "POST",
            {"Host": "localhost:8086", "Origin": "https://console.example.com", "Sec-Fetch-Site": "cross-site"},
            None,
        ),
        ("POST", {"Host": "localhost", "Origin": "http://localhost"}, None),
        ("POST", {"Host": "localhost:80", "Origin": "http://localhost"}, None),
        ("POST", {"Host": "LOCALHOST:8086", "Origin": "http://localhost:8086"}, None),
        # The gateway has no TLS, so this page comes from somewhere else.
        ("POST", {"Host": "localhost:8086", "Origin": "https://localhost:8086"}, 403),
        ("POST", {"Host": "localhost:8086", "Origin": "ftp://localhost:8086"}, 403),
        ("POST", {"Host": "localhost:8086", "Origin": "http://localhost:8087"}, 403),
        ("POST", {"Host": "localhost:8086", "Origin": "http://evil.example.com"}, 403),
        ("POST", {"Host": "localhost:8086", "Origin": "null"}, 403),
        ("POST", {"Host": "localhost:8086", "Origin": "http://[::1"}, 403),
        ("POST", {"Host": "localhost:8086", "Origin": "\udcff"}, 403),
        ("GET", {"Host": "localhost:8086", "Origin": "null"}, 403),
        ("POST", {"Host": "localhost:8086", "Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", {"Host": "localhost:8086", "Sec-Fetch-Site": "same-site"}, 403),
        ("POST", {"Host": "localhost:8086", "Sec-Fetch-Site": "same-origin"}, None),
        ("POST", {"Host": "localhost:8086", "Sec-Fetch-Site": "none"}, None),
        ("POST", {"Host": "localhost:8086", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ("GET", {"Host": "localhost:8086", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, None),
        ("GET", {"Host": "localhost:8086", "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_pages_of_other_sites_may_not_send_requests(method: str, headers: dict[str, str], status: int | None) -> None:
    problem = RULES.problem(method, headers)
    assert (problem.status if problem else None) == status


def test_names_of_the_server_are_not_checked_by_default() -> None:
    assert OriginRules().problem("POST", {"Host": "anything"}) is None


def test_only_listed_origins_may_read_answers() -> None:
    assert (
        RULES.headers_for("https://console.example.com")["Access-Control-Allow-Origin"] == "https://console.example.com"
    )
    assert "Access-Control-Allow-Origin" not in RULES.headers_for("https://evil.example.com")
    assert RULES.preflight_headers("https://evil.example.com", "") is None
    assert OriginRules().headers_for("https://console.example.com") == {}


OPERATOR = "pkg1_0123456789abcdef_" + "o" * 43


@pytest.mark.parametrize(
    ("listen", "more", "accepted"),
    [
        ("127.0.0.1:0", {}, "home"),
        ("127.0.0.1:0", {"PKGER_HTTP_TOKENS": "rows"}, "home rows"),
        ("0.0.0.0:0", {"PKGER_ALLOW_PLAINTEXT": "1", "PKGER_OPERATOR_TOKEN_FILE": "operator"}, "operator"),
        ("0.0.0.0:0", {"PKGER_ALLOW_PLAINTEXT": "1", "PKGER_HTTP_TOKENS": "rows"}, "rows"),
        (
            "10.0.0.1:1",
            {
                "PKGER_ALLOW_PLAINTEXT": "1",
                "PKGER_OPERATOR_TOKEN_FILE": "operator",
                "PKGER_HTTP_TOKENS": "rows",
            },
            "operator rows",
        ),
        ("unix:{folder}/s", {}, "home operator rows nothing"),
        ("0.0.0.0:0", {"PKGER_HTTP_TOKENS": "rows"}, "PKGER_ALLOW_PLAINTEXT=1"),
        ("0.0.0.0:0", {"PKGER_ALLOW_PLAINTEXT": "1"}, "PKGER_OPERATOR_TOKEN_FILE"),
        ("127.0.0.1:0", {"PKGER_HTTP_TOKENS": "nothing"}, "PKGER_HTTP_TOKENS: cannot read"),
    ],
)
def test_what_a_listener_is_decides_which_tokens_it_accepts(
    tmp_path: Path, listen: str, more: dict[str, str], accepted: str
) -> None:
    (tmp_path / "rows").write_text(f"ci {digest('row')}\n")
    (tmp_path / "operator").write_text(OPERATOR)
    (tmp_path / "operator").chmod(0o600)
    environ = {name: value if value == "1" else str(tmp_path / value) for name, value in more.items()}
    environ |= {"PKGER_HOME": str(tmp_path), "PKGER_LISTEN": listen.format(folder=tmp_path)}
    settings, common = load_gateway(environ), load(environ)
    if accepted.startswith("PKGER"):
        with pytest.raises(CannotServe, match=accepted):
            http_entrances(settings, common)
        return
    (entrance,) = http_entrances(settings, common)
    tokens = {"home": home_token(tmp_path).token(), "operator": OPERATOR, "rows": "row", "nothing": "nothing"}
    principals = {name: entrance.tokens.principal([f"Token {token}"]) for name, token in tokens.items()}
    assert [name for name, principal in principals.items() if isinstance(principal, str)] == accepted.split()


def test_settings_are_read() -> None:
    made = load_gateway(
        {
            "PKGER_HTTP_ORGS": "a=embedded/x, b=eu/00000000000000a1",
            "PKGER_HTTP_HOSTS": "Gateway, other",
            "PKGER_HTTP_ORIGINS": "https://a/",
            "PKGER_HTTP_BASE_PATH": "/pkger/",
            "PKGER_MAX_BYTES": "1000",
            "PKGER_HTTP_MAX_REQUESTS": "7",
            "PKGER_HTTP_MAX_STREAMS": "8",
        }
    )
    assert made.orgs == {"a": Target("embedded", "x"), "b": Target("eu", "00000000000000a1")}
    assert (made.hosts, made.origins, made.base_path) == (("gateway", "other"), ("https://a",), "/pkger")
    assert (made.body_bytes, made.requests, made.streams) == (1100, 7, 8)


@pytest.mark.parametrize(
    "environ",
    [
        {"PKGER_HTTP_ORGS": "a"},
        {"PKGER_HTTP_ORGS": "a=b"},
        {"PKGER_HTTP_ORGS": "a=b/c,a=b/d"},
        {"PKGER_HTTP_BASE_PATH": "pkger"},
        {"PKGER_HTTP_BASE_PATH": "/a//b"},
        {"PKGER_HTTP_MAX_REQUESTS": "0"},
        {"PKGER_HTTP_BODY_SECONDS": "soon"},
        {"PKGER_HTTP_ORIGINS": "console.example.com"},
        {"PKGER_HTTP_ORIGINS": "https://console.example.com/path"},
        {"PKGER_HTTP_ORIGINS": "https://user@console.example.com"},
        {"PKGER_HTTP_ORIGINS": "https://a,*"},
        {"PKGER_HTTP_HOSTS": "http://gateway"},
        {"PKGER_HTTP_HOSTS": "gateway:x"},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(environ: dict[str, str]) -> None:
    with pytest.raises(SettingInvalid, match=next(iter(environ))):
        load_gateway(environ)
