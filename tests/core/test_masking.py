"""Masked credentials in addresses: laws, and the forms of addresses."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.masking import MASKS, credential_parameters, has_user, masked, masked_sides

HOSTS = st.sampled_from(["example.com", "hooks.example.com", "slack.com", "h:8086", "[::1]:80"])
SAFE = string.ascii_letters + string.digits + "-._~!$'()*+,;:"
# A digit that no other part of an address has marks the credential.
CREDENTIALS = st.text(SAFE, max_size=20).map(lambda text: f"9q{text.replace('9', '8')}9z")
NAMES = st.sampled_from(
    ["token", "TOKEN", "access_token", "api-key", "apiKey", "X-Amz-Signature", "client.secret", "%74oken"]
)
PLAIN_NAMES = st.sampled_from(["a", "monkey", "keyboard", "tokens_left", "max", "passing"])
PLAIN = st.text("abcxyz", max_size=5)


@st.composite
def addresses(draw: st.DrawFn, credential: str) -> str:
    """An address with a credential in a random place; an empty one: an address without credentials."""
    scheme = draw(st.sampled_from(["http://", "https://", "HTTPS://"]))
    host, path = draw(HOSTS), draw(st.sampled_from(["", "/", "/a/b", "/services/x"]))
    query = [f"{draw(PLAIN_NAMES)}={draw(PLAIN)}" for _ in range(draw(st.integers(0, 2)))]
    place = draw(st.sampled_from(["user", "password", "webhook", "query"])) if credential else ""
    if place == "query":
        query.insert(draw(st.integers(0, len(query))), f"{draw(NAMES)}={credential}")
    user = {"user": f"{credential}@", "password": f"me:{credential}@"}.get(place, "")
    if place == "webhook":
        host, path = draw(st.sampled_from(["hooks.slack.com", "Hooks.Slack.com:443"])), f"/services/{credential}"
    return scheme + user + host + path + (f"?{'&'.join(query)}" if query else "") + draw(st.sampled_from(["", "#part"]))


@st.composite
def texts(draw: st.DrawFn, credential: str) -> str:
    """A text with an address."""
    before, after = draw(st.sampled_from([("", ""), ("see ", " there"), ('x(url: "', '")\n'), ("a\\", '\\"b')]))
    return before + draw(addresses(credential)) + after


@given(CREDENTIALS, st.data())
def test_a_masked_text_holds_no_credential(credential: str, data: st.DataObject) -> None:
    text = data.draw(texts(credential))
    assert credential in text
    assert credential not in masked(text)
    in_json = json.dumps({"a": text, "b": [text]})
    assert credential not in masked(in_json)
    assert json.loads(masked(in_json)).keys() == {"a", "b"}


@given(CREDENTIALS, st.data())
def test_masking_twice_equals_masking_once(credential: str, data: st.DataObject) -> None:
    text = data.draw(texts(credential))
    assert masked(masked(text)) == masked(text)
    sides = masked_sides([text, data.draw(texts(f"{credential}9")), data.draw(texts(f"{credential}99"))])
    assert masked_sides(sides) == sides


@given(st.data())
def test_an_address_without_a_credential_is_unchanged(data: st.DataObject) -> None:
    text = data.draw(texts(""))
    assert masked(text) == text


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3))
def test_sides_are_equal_exactly_if_their_credentials_are(sides: list[str]) -> None:
    shown = masked_sides([f"https://example.com/?token={side}" for side in sides])
    assert [[one == other for other in shown] for one in shown] == [[one == other for other in sides] for one in sides]
    assert {text.partition("=")[2] for text in shown} == {*MASKS[: len({*sides})]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://hooks.slack.com/services/T0/B0/x?a=1", "https://hooks.slack.com/services/(hidden)?a=1"),
        ("https://hooks.slack.com/services", "https://hooks.slack.com/services"),
        ("hooks.slack.com/workflows/T0/x", "hooks.slack.com/workflows/(hidden)"),
        ("https://slack.com/api/chat.postMessage", "https://slack.com/api/chat.postMessage"),
        ("/hook?token=x", "/hook?token=(hidden)"),
        ("https://h/?token=&a=?key=x", "https://h/?token=&a=?key=(hidden)"),
        ("https://h/?next=https://me:pw@h/?token=x?y", "https://h/?next=https://(hidden)@h/?token=(hidden)"),
        ("https://h/?a=1&amp;token=x", "https://h/?a=1&amp;token=(hidden)"),
        (r"https://h/?a=1\u0026token=x\u0026b=2", r"https://h/?a=1\u0026token=(hidden)\u0026b=2"),
        ("https://<user>:<password>@h/", "https://<user>:<password>@h/"),
        ("me@example.com, https://example.com/@me", "me@example.com, https://example.com/@me"),
        ("what? key=x", "what? key=x"),
    ],
)
def test_the_credentials_of_an_address_are_masked(text: str, expected: str) -> None:
    assert masked(text) == expected


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("https://h/p.yml", []),
        ("https://h/token/p.yml?ref=main&monkey=1&token=", []),
        ("https://h/p.yml?token=x&a=1&token=y", ["token"]),
        (
            "https://h/p.yml?sv=1&Signature=x&X-Amz-Credential=y&accessKey=z",
            ["Signature", "X-Amz-Credential", "accessKey"],
        ),
        ("https://h/p.yml?%70assword=x", ["%70assword"]),
    ],
)
def test_parameters_with_credentials_are_known_by_their_names(address: str, names: list[str]) -> None:
    assert credential_parameters(address) == names


@pytest.mark.parametrize(
    "address", ["https://me@h", "ftp://me:pw@h/x", "//:pw@h", "https://a/b:pw@h", "https://h/@me", "a@b"]
)
def test_a_user_is_in_the_authority(address: str) -> None:
    assert has_user(address) is (not address.startswith(("https://a", "https://h/", "a@")))
