"""Lists in texts for people: all parts, or the first ones and how many more there are."""

from collections.abc import Sequence


def and_more(left: int, before: str = " ", noun: str = "") -> str:
    """
    Say that *left* parts are not shown, such as " and 3 more"; empty where none is left.

    Args:
        left: Number of the parts that are not shown; below 1: none.
        before: What separates it from the parts that are shown.
        noun: What the parts are, such as "fields".
    """
    return f"{before}and {left:,} more{noun and f' {noun}'}" if left > 0 else ""


def listed(parts: Sequence[str], most: int, separator: str = ", ", noun: str = "") -> str:
    """
    The first *most* parts, and how many more there are: "a, b and 3 more", or "a; b; and 3 more".

    Args:
        parts: All of them, in order.
        most: How many are shown.
        separator: Stands between parts; any but a comma stands before the number, too.
        noun: What the parts are, such as "fields".
    """
    before = " " if separator == ", " else separator
    return separator.join(parts[:most]) + and_more(len(parts) - most, before, noun)


def enumerated(parts: Sequence[str]) -> str:
    """All *parts*: "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def fitting(parts: Sequence[str], most_characters: int, separator: str = "; ") -> list[str]:
    """The first part, and as many more as fit into *most_characters*, joined and with non-ASCII characters escaped."""
    shown = list(parts[:1])
    for each in parts[1:]:
        if len(ascii(separator.join([*shown, each]))) > most_characters:
            break
        shown.append(each)
    return shown


def deletes_text(deletes: int, losses: int) -> str:
    """
    The deletions of a plan and its updates that lose data, after "the plan"; empty where it has neither.

    Such as "deletes 2 resources and has 1 update that loses data".
    """
    parts = [f"deletes {deletes:,} resource{'s' * (deletes > 1)}"] if deletes else []
    parts += [f"has {losses:,} update{'s that lose' if losses > 1 else ' that loses'} data"] if losses else []
    return " and ".join(parts)
