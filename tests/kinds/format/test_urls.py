"""The form of a URL (docs/reference/package-format.md, "Notification endpoints")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kinds.format.urls import is_url


@pytest.mark.parametrize(
    "text",
    [
        *("x", "/a", "a b", "http://", "a:b", "mailto:x", "123", "http://x?%zz", "*", "?x", "#x", "//host/a", "///a"),
        *("https://user:pass@example.com:8086/a%20b?c=d#e", "http://[::1]:80/", "http://[fe80::1%25en0]/", "http://é/"),
        *("http://x:/", "http://a%25b/", "HTTP://X", "http:x:y", "a/b:c", "http://x#a b", 'http://a"b<c>/'),
    ],
)
def test_these_are_urls(text: str) -> None:
    assert is_url(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "a\x7f", " http://x", "1a:b", "://x", "d__*(https://x", "%zz", "http://x/%zz", "http://x/%", "a%2"),
        *("http://a b", "http://[::1", "http://a:b", "http://x:80a/", "http://h%41/", "http://a b@c/", "x#%zz"),
        *("http://[::1]x/", "http://a\\b/", "http://a|b/", "http://%zz/", ":x"),
    ],
)
def test_these_are_no_urls(text: str) -> None:
    assert not is_url(text)


@given(st.text() | st.text("ht:/[]%@#?a1. \x7f", max_size=20))
def test_any_text_has_an_answer(text: str) -> None:
    assert is_url(text) in (True, False)
