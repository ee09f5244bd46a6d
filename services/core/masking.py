"""Masks credentials in addresses, in specs and messages that people see (docs/packages.md, "Addresses")."""

import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote

MASKS = ("(hidden)", "(changed)", "(changed-again)")
"""The text in place of a credential. The second and third text stand for credentials that no earlier side has."""

_WORDS = frozenset(
    (
        *("apikey", "auth", "credential", "credentials", "key", "passphrase", "passwd", "password"),
        *("pwd", "secret", "sig", "signature", "token"),
    )
)
"""A query value is a credential if one of these is a word of its name: the one list of such words."""

# An address ends at a space, a quotation mark, a backslash (an escape in JSON or Flux), or an angle bracket.
_USER = re.compile(r"""(https?://)([^/?#\s"\\<>]+)(?=@)""", re.IGNORECASE)
_WEBHOOK = re.compile(r"""(\bhooks\.slack(?:-gov)?\.com\.?(?::\d+)?/+[^/?#\s"\\<>]+/+)([^?#\s"\\<>]+)""", re.IGNORECASE)
_QUERY_NAME = re.compile(r"""(?:[?&]|\\u0026)(?:amp;)?([^=?&#\s"\\<>]+)=""")
_QUERY_VALUE = re.compile(r"""[^&#\s"\\<>]*""")

_BETWEEN_WORDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])")

_HAS_USER = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#]*@")


def masked(text: str) -> str:
    """
    *text* with masked credentials: users and passwords, the paths of Slack's webhooks, and query values.

    Args:
        text: Any text: an address, a text with addresses, or JSON text, which stays JSON text.
    """
    return masked_sides([text])[0]


def masked_sides(sides: Sequence[str]) -> tuple[str, ...]:
    """
    Texts that are compared, each ``masked``.

    Equal credentials have equal masks. Credentials of different sides have different masks, so that a change is seen.
    """
    if not any(map(may_hold_credential, sides)):
        return tuple(sides)
    masks: dict[str, str] = {}
    return tuple([_masked(side, masks) for side in sides])


def may_hold_credential(text: str) -> bool:
    """Whether *text* may have anything to mask. Rules out most texts, in much less time than the expressions take."""
    return "?" in text or "://" in text or "hooks.slack" in text.lower()


def credential_parameters(address: str) -> list[str]:
    """The names of query parameters of *address* that are named like a credential and have a value; each once."""
    matches = [match for match in _QUERY_NAME.finditer(address) if _names_credential(match[1])]
    return list(dict.fromkeys(match[1] for match in matches if _has_value(address, match.end())))


def has_user(address: str) -> bool:
    """Whether an address, relative or not, has a user or a password."""
    return _HAS_USER.match(address) is not None


def _masked(text: str, masks: dict[str, str]) -> str:
    """*text* with the *masks* of known credentials; a mask for each other credential is added to *masks*."""
    mask = MASKS[min(len({*masks.values()}), len(MASKS) - 1)]

    def hidden(credential: str) -> str:
        return credential if credential in MASKS else masks.setdefault(credential, mask)

    # Each expression is used only if its address may be there, for the same reason.
    if "://" in text and "@" in text:
        text = _USER.sub(lambda match: match[1] + hidden(match[2]), text)
    if "hooks.slack" in text.lower():
        text = _WEBHOOK.sub(lambda match: match[1] + hidden(match[2]), text)
    if "?" in text:
        text = _with_masked_query(text, hidden)
    return text


def _with_masked_query(text: str, hidden: Callable[[str], str]) -> str:
    parts: list[str] = []
    end = 0
    for name in _QUERY_NAME.finditer(text):
        # Any other value may be an address with a query of its own.
        if name.start() >= end and _names_credential(name[1]):
            value = _QUERY_VALUE.match(text, name.end())
            if value and value[0]:
                parts += [text[end : name.end()], hidden(value[0])]
                end = value.end()
    return "".join([*parts, text[end:]])


def _has_value(address: str, start: int) -> bool:
    """Whether the value of a query parameter, which begins at *start*, is not empty."""
    value = _QUERY_VALUE.match(address, start)
    return bool(value and value[0])


def _names_credential(parameter: str) -> bool:
    """Whether the value of a query *parameter* is a credential, by the words of its name."""
    return any(word.lower() in _WORDS for word in _BETWEEN_WORDS.split(unquote(parameter)))
