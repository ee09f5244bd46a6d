"""Worlds of any number of packages, and what it takes to resolve them."""

import sys
from typing import Any

from tests.packages.rows import case

Case = dict[str, Any]


def cycle(size: int) -> Case:
    """Each package requires the next one, and the last one the first."""
    return case([f"c{at} 1.0.0 [c{(at + 1) % size}]" for at in range(size)], [], "install c0")


def broken_chain(size: int) -> Case:
    """Each package requires the next one, and the last one is nowhere."""
    return case([f"c{at} 1.0.0 [c{at + 1}]" for at in range(size)], [], "install c0")


def many_ranges(size: int) -> Case:
    """Each of many versions goes with one version of another package, none of which goes with a third one."""
    versions = [f"{at}.0.0 [d ^{at}]" for at in range(1, size + 1)]
    others = [f"{at}.0.0 [z ^9]" for at in range(1, size + 1)]
    return case([f"p {' | '.join(versions)}", f"d {' | '.join(others)}", "z 1.0.0"], [], "install p@*")


def diamonds(size: int) -> Case:
    """Each package is required by two others, so that many ways lead to the last one, which is nowhere."""
    published = [f"c{at} 1.0.0 [l{at}, r{at}]" for at in range(size)]
    sides = [f"{side}{at} 1.0.0 [c{at + 1}]" for at in range(size) for side in "lr"]
    return case([*published, *sides], [], "install c0")


def installed_chain(size: int) -> Case:
    """Each installed package requires the next one, and the last one is to go."""
    chain = [f"c{at} 1.0.0 [c{at + 1}]" for at in range(size)]
    return case([*chain, f"c{size} 1.0.0"], [*chain, f"c{size} 1.0.0"], f"uninstall c{size}")


def cascade(size: int) -> Case:
    """The same with all that require it."""
    return {**installed_chain(size), "options": {"cascade": True}}


def installed_pairs(size: int) -> Case:
    """Installed packages that require each other."""
    pairs = [text for at in range(size) for text in (f"a{at} 1.0.0 [b{at}]", f"b{at} 1.0.0 [a{at}]")]
    return case([*pairs, "p 1.0.0"], pairs, "install p")


def held_back(size: int) -> Case:
    """Installed packages that all could be updated if one of them could."""
    published = [f"p{at} 1.0.0 [d ^1] | 2.0.0 [d ^2]" for at in range(size)]
    installed = [f"p{at} 1.0.0 [d ^1]" for at in range(size)]
    rest = ["b 1.0.0 [d ^1]"]
    return case([*published, *rest, "d 1.0.0 | 2.0.0"], [*installed, *rest, "d 1.0.0 auto"], "update-all")


def updatable_chain(size: int) -> Case:
    """Each installed package requires the next one; all could move up a little, and further only together."""
    published = [f"c{at} 1.0.0 [c{at + 1} ^1] | 1.5.0 [c{at + 1} ^1] | 2.0.0 [c{at + 1} ^2]" for at in range(size)]
    installed = [f"c{at} 1.0.0 [c{at + 1} ^1]" for at in range(size)]
    last = f"c{size}"
    return case([*published, f"{last} 1.0.0 | 1.5.0 | 2.0.0"], [*installed, f"{last} 1.0.0 auto"], f"update {last}")


def choices_of_moves(size: int) -> Case:
    """One of three installed packages has to move, many times over."""
    published = [f"p 1.0.0 [{', '.join(f'q{at}' for at in range(size))}]"]
    installed = [f"{name}{at} 1.0.0" for at in range(size) for name in "abc"]
    for at in range(size):
        published.append(f"q{at} 1.0.0 [a{at} ^2] | 1.1.0 [b{at} ^2] | 1.2.0 [c{at} ^2]")
        published += [f"{name}{at} 1.0.0 | 2.0.0" for name in "abc"]
    return case(published, installed, "install p", {"update_dependencies": True})


class Calls:
    """
    Counts calls of functions: a measure of work that no other process changes.

    Attributes:
        number: The number so far.
    """

    number = 0

    def __enter__(self) -> "Calls":
        self._before = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(self._before)

    def _count(self, frame: object, event: str, argument: object) -> None:
        self.number += event in ("call", "c_call")
