"""Web pages where a file should be: they ask for a login, or show the file instead of serving it."""

_BEGINNINGS = ("<!doctype html", "<html")
_READ_CHARACTERS = 300


def is_web_page(text: str) -> bool:
    """Whether *text* begins like a web page."""
    return text[:_READ_CHARACTERS].lstrip("\ufeff \t\r\n").lower().startswith(_BEGINNINGS)
