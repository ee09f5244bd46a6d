"""The bounds of fencing tokens, for drivers, which receive tokens, and for appliers, which get them back."""

from services.core.errors import RequestInvalid

HIGHEST_TOKEN = 2**62
"""
The highest token. A store counts on from the highest token that a platform has seen, and its column ends at 2^63 - 1.
"""

_DIGITS = 20
"""More digits than any token has."""


def refuse_too_high(token: int) -> None:
    """
    Check the token of a request to a driver.

    Raises:
        RequestInvalid: It is above ``HIGHEST_TOKEN``.
    """
    if token > HIGHEST_TOKEN:
        raise RequestInvalid("fence.token", f"{token} is above {HIGHEST_TOKEN}, the highest fencing token")


def token_of(text: str) -> int | None:
    """
    The token that a driver wrote as *text* into an error; None: the text is no number.

    A number of more digits than any token has is cut, and still above ``HIGHEST_TOKEN``: ``int`` fails for thousands.
    """
    return int(text.lstrip("0")[:_DIGITS] or "0") if text.isdecimal() else None


def token_problem(scope: str, seen: int) -> str:
    """
    What is wrong with the highest token that a platform has *seen* in *scope*, the id of a stack.

    Returns:
        The problem, for people; empty: a later operation can have a higher token.
    """
    if seen < HIGHEST_TOKEN:
        return ""
    return (
        f"it has seen fencing token {seen} of stack {scope}, after which no valid one is left (the highest is"
        f" {HIGHEST_TOKEN}); correct the token at the platform, or its driver, and try again"
    )
