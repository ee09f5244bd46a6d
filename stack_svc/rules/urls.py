"""URLs of stacks: addresses of packages that the parser would fetch."""

from collections.abc import Sequence

from services.addresses import is_of_jsonnet, raw_address, vetted, without_user
from services.core.errors import EncodingInvalid, RequestInvalid, SourceUnreadable

MOST = 100
"""Largest number of URLs of one stack (stack.proto)."""

LONGEST = 2048
"""Largest length of a URL, in characters (stack.proto)."""


def checked_urls(urls: Sequence[str], field: str, allow_jsonnet: bool) -> tuple[str, ...]:
    """
    Accept the URLs of a stack; nothing is fetched.

    Args:
        urls: The URLs, in order.
        field: Name of the field of the request, for errors.
        allow_jsonnet: Whether the parser evaluates programs.

    Raises:
        RequestInvalid: There are too many, or one is too long, occurs twice, or is not the address of a package.
        EncodingInvalid: One is the address of a program, and programs are not evaluated.
    """
    first: dict[str, int] = {}
    if len(urls) > MOST:
        raise RequestInvalid(field, f"a stack has at most {MOST} URLs, and not {len(urls)}")
    for number, url in enumerate(urls):
        place = f"{field}[{number}]"
        if len(url) > LONGEST:
            raise RequestInvalid(place, f"a URL has at most {LONGEST:,} characters, and not {len(url):,}")
        if first.setdefault(url, number) < number:
            raise RequestInvalid(place, f"is the same as {field}[{first[url]}]")
        try:
            vetted(raw_address(url))
        except SourceUnreadable as error:
            raise RequestInvalid(place, f"{without_user(url)}: {error.metadata['problem']}") from None
        if is_of_jsonnet(url) and not allow_jsonnet:
            raise EncodingInvalid(without_user(url), "jsonnet", "evaluate it and take the address of its JSON")
    return tuple(urls)
