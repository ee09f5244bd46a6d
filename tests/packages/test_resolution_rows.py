"""The truth tables of resolution: one edge, several, uninstalling, repositories, consent and choice."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.packages.resolving import resolved
from tests.packages.rows import D, as_text, case

XY = ("x 1.0.0 | 1.1.0", "y 1.0.0")
PD = "d 1.0.0 | 2.0.0"
PP = "p 1.0.0 [d ^1] | 2.0.0 [d ^2]"
T35 = ["p 12.2.0 [a, b]", "a 2.0.0 [c ^2] | 1.0.0 [c ^1]", "b 1.0.0 [c ^1]", "c 1.0.0 | 2.0.0"]
GAP = "x 1.0.0 [d ^1.0.0 || 2.0.0]"

INSTALLS: Mapping[str, tuple[Sequence[str], Sequence[str], str, Sequence[str]]] = {
    "T01": (["p 12.2.0 [d]", D], [], "", ["+d 2.1.0, +p 12.2.0"]),
    "T02": (["p 12.2.0 [d]", D], ["d 1.2.1"], "", ["+p 12.2.0"]),
    "T03": (["p 12.2.0 [d]", D, *XY], ["d 1.2.1", "x 1.0.0 [d]", "y 1.0.0 [d]"], "", ["+p 12.2.0"]),
    "T04": (["p 12.2.0 [d]", D], ["d 1.2.1", "x 1.0.0 [d >=1 <2]", "y 1.0.0 [d]"], "", ["+p 12.2.0"]),
    "T05": (["p 12.2.0 [d]", D], ["d 1.2.1", "x 1.0.0 [d >=1 <2]", "y 1.0.0 [d 1.x.x]"], "", ["+p 12.2.0"]),
    "T06": (["p 12.2.0 [d]", D], ["d 2.0.0-alpha.2"], "", ["+p 12.2.0"]),
    "T07": (["p 12.2.0 [d]", "d*1.1.7 1.1.7 | 2.0.0-alpha.1"], [], "", ["+d 1.1.7, +p 12.2.0"]),
    "T08": (["p 12.2.0 [d]"], [], "", ["N PACKAGE_NOT_FOUND", "facts: d p"]),
    "T09": (["p 12.2.0 [d ^1.2.3]", D], [], "", ["+d 1.4.0, +p 12.2.0"]),
    "T10": (["p 12.2.0 [d ^1.2.3]", "d 1.2.1 | 2.0.0"], [], "", ["N NO_MATCHING_VERSION", "facts: d p"]),
    "T11": (["p 12.2.0 [d ^1.2.3]", "d 1.2.1 | 1.3.0-rc.1"], [], "", ["N PRERELEASE_ONLY", "facts: d p"]),
    "T12": (["p 12.2.0 [d ^1.2.3-0]", "d 1.2.1 | 1.3.0-rc.1"], [], "", ["+d 1.3.0-rc.1, +p 12.2.0"]),
    "T13": (["p 12.2.0 [d ^1.2.3]", D], ["d 1.4.0"], "", ["+p 12.2.0"]),
    "T14": (
        ["p 12.2.0 [d ^1.2.3]", D], ["d 1.2.1"], "",
        ["R VERSION_CONFLICT", "update: ^d 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T15": (
        ["p 12.2.0 [d ^1.2.3]", D, *XY], ["d 1.2.1", "x 1.0.0 [d]", "y 1.0.0 [d]"], "",
        ["R VERSION_CONFLICT", "update: ^d 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T16": (["p 12.2.0 [d ^1.2.3]", "d 1.2.1"], ["d 1.2.1"], "", ["N NO_MATCHING_VERSION", "facts: d p"]),
    "T17": (
        ["p 12.2.0 [d ^1.2.3]", D], ["d 2.0.0"], "",
        ["N VERSION_CONFLICT", "downgrade: vd 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T18": (
        ["p 12.2.0 [d ^1.2.3]", D], ["d 2.0.0-alpha.2"], "",
        ["N VERSION_CONFLICT", "downgrade: vd 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T19": (
        ["p 12.2.0 [d ^1.2.3]", D, *XY], ["d 2.0.0", "x 1.0.0 [d]", "y 1.0.0 [d]"], "",
        ["N VERSION_CONFLICT", "downgrade: vd 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T20": (
        ["p 12.2.0 [d ^1.2.3]", D], ["d 1.4.0", GAP, "y 1.0.0 [d >=1.1 <3]"], "", ["+p 12.2.0"],
    ),
    "T21": (
        ["p 12.2.0 [d ^1.2.3]", D, GAP, "y 1.0.0 [d >=1.1 <3]"], ["d 1.2.1", GAP, "y 1.0.0 [d >=1.1 <3]"], "",
        ["R VERSION_CONFLICT", "update: ^d 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T22": (
        ["p 12.2.0 [d ^1.2.3]", D, "x 1.0.0 [d <1.2.5]"], ["d 1.2.1", "x 1.0.0 [d <1.2.5]"], "",
        ["N VERSION_CONFLICT", "facts: d p x"],
    ),
    "T23": (
        ["p 12.2.0 [d ^2]", D, "x 1.0.0 [d ^1] | 2.0.0 [d ^2]"], ["d 1.2.1", "x 1.0.0 [d ^1]"], "",
        ["R VERSION_CONFLICT", "update: ^d 2.1.0, +p 12.2.0, ^x 2.0.0", "facts: d p"],
    ),
    "T24": (
        ["p 12.2.0 [d ^2]", D, "x 1.0.0 [d ^1 || ^2]", "y 1.0.0 [d ^1]"],
        ["d 1.2.1", "x 1.0.0 [d ^1 || ^2]", "y 1.0.0 [d ^1]"], "",
        ["N VERSION_CONFLICT", "facts: d p y"],
    ),
    "T25": (
        ["p 12.2.0 [d ^1.2.3]", D, GAP, "y 1.0.0 [d >=1.1 <3]"], ["d 2.0.0", GAP, "y 1.0.0 [d >=1.1 <3]"], "",
        ["N VERSION_CONFLICT", "downgrade: vd 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T26": (
        ["p 12.2.0 [d >=1.5.0]", "d 1.2.1 | 2.0.0", "x 1.0.0 [d <2]"], ["d 1.2.1", "x 1.0.0 [d <2]"], "",
        ["N VERSION_CONFLICT", "facts: d p x"],
    ),
    "T27": (
        ["p 12.2.0 [d ^1 || ^3]", f"{D} | 3.0.0"], ["d 2.0.0"], "",
        ["R VERSION_CONFLICT", "update: ^d 3.0.0, +p 12.2.0", "facts: d p"],
    ),
    "T28": (
        ["p 12.2.0 [d ^1 || ^3]", D], ["d 2.0.0"], "",
        ["N VERSION_CONFLICT", "downgrade: vd 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T29": (
        ["p 12.2.0 [d ^1] | 12.3.0 [d ^2]", D], ["d 2.0.0"], "",
        ["N VERSION_CONFLICT", "other-version: +p 12.3.0", "downgrade: vd 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T30": (["p 12.2.0 [d =1.4.0]", "d 1.4.0 | 1.4.0+2"], ["d 1.4.0+2"], "", ["+p 12.2.0"]),
    "T31": (["p 12.2.0 [d ^1.4]", "d 1.4.0+1 | 1.4.0+10 | 1.4.0+2"], [], "", ["+d 1.4.0+10, +p 12.2.0"]),
    "T32": (
        ["p 12.2.0 [d ^1.2.3]", D], ["d 1.2.1 pinned"], "",
        ["N PINNED", "unpin: ^d 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "T33": (["p 12.2.0 [e]", "e 1.0.0 [d ^1]", D], [], "", ["+d 1.4.0, +e 1.0.0, +p 12.2.0"]),
    "T34": (["p 12.2.0 [d, e]", "e 1.0.0 [d ^1]", D], [], "", ["+d 1.4.0, +e 1.0.0, +p 12.2.0"]),
    "T35": (T35, [], "", ["+c 1.0.0, +a 1.0.0, +b 1.0.0, +p 12.2.0"]),
    "T36": (["p 12.2.0 [a]", "a 1.0.0 [p]"], [], "", ["N CYCLE", "facts: a p"]),
    "T37": (["p 12.2.0 [a]", "a 1.0.0 [p ^11]"], [], "", ["N VERSION_CONFLICT", "facts: a p"]),
    "T38": (["p 12.2.0 [e]", "e 1.0.0 [z]"], [], "", ["N PACKAGE_NOT_FOUND", "facts: e p z"]),
    "T39": (
        [PP, PD], ["p 1.0.0 [d ^1]", "d 1.0.0 auto"], "update p@2.0.0",
        ["R VERSION_CONFLICT", "update: ^d 2.0.0, ^p 2.0.0", "facts: d p"],
    ),
    "T40": (
        [PP, PD], ["p 1.0.0 [d ^1]", "d 1.0.0"], "update d@2.0.0",
        ["R VERSION_CONFLICT", "update: ^d 2.0.0, ^p 2.0.0", "facts: d p"],
    ),
    "T41": ([PP, PD], ["p 1.0.0 [d ^1]", "d 1.0.0"], "update p@2.0.0 d@2.0.0", ["^d 2.0.0, ^p 2.0.0"]),
    "T42": (
        ["p 1.0.0 [d 1.x.x]", "d 1.0.0 | 1.5.0 | 2.0.0"], ["p 1.0.0 [d 1.x.x]", "d 1.0.0"], "update d@1.5.0",
        ["^d 1.5.0"],
    ),
    "T43": (["p 1.0.0 [c ^1] | 2.0.0", "c 1.0.0"], ["p 1.0.0 [c ^1]", "c 1.0.0 auto"], "update p", ["^p 2.0.0, -c"]),
    "T44": (
        [PP, "d 0.9.0 | 2.0.0"], ["p 1.0.0 [d ^1]", "d 0.9.0"], "update p@2.0.0",
        ["R VERSION_CONFLICT", "update: ^d 2.0.0, ^p 2.0.0", "facts: d p"],
    ),
    "T45": (["p 12.2.0", "r 1.0.0"], ["q 1.0.0 [r ^2]", "r 1.0.0"], "", ["+p 12.2.0", "BROKEN_BEFORE q r"]),
    "T45, missing": (["p 12.2.0", "r 2.0.0"], ["q 1.0.0 [r ^2]"], "", ["+p 12.2.0", "BROKEN_BEFORE q r"]),
    "T46": (T35[::-1], [], "", ["+c 1.0.0, +a 1.0.0, +b 1.0.0, +p 12.2.0"]),
    "T47": ([D], ["d 1.4.0 auto", "p 12.2.0 [d]"], "install d", ["!d"]),
}  # fmt: skip
"""Published, installed, request (p@12.2.0 is installed unless said), answer."""


@pytest.mark.parametrize("row", INSTALLS)
def test_installs_and_updates(row: str) -> None:
    published, installed, request, lines = INSTALLS[row]
    assert as_text(resolved(case(published, installed, request or "install p@12.2.0"))) == lines


PUBLISHED = ("p 12.2.0 [d]", "e 1.0.0 [d]", D, "x 1.0.0 [d]")
CHAIN = ["p 12.2.0 [e]", "e 1.0.0 [d] auto", "d 1.4.0 auto"]
UNINSTALLS: Mapping[str, tuple[Sequence[str], str, Sequence[str]]] = {
    "U01": (["p 12.2.0 [d]", "d 1.4.0"], "d", ["N REQUIRED_BY", "cascade: -p, -d", "facts: d p"]),
    "U02": (["p 12.2.0 [d]", "d 1.4.0 auto"], "p", ["-p, -d"]),
    "U03": (["p 12.2.0 [d]", "d 1.4.0"], "p", ["-p"]),
    "U04": (["p 12.2.0 [d]", "x 1.0.0 [d]", "d 1.4.0 auto"], "p", ["-p"]),
    "U05": (CHAIN, "p", ["-p, -e, -d"]),
    "U06": (CHAIN, "d", ["N REQUIRED_BY", "cascade: -p, -e, -d", "facts: d e p"]),
    "U07": (["p 12.2.0 [d]", "d 1.4.0"], "p d", ["-p, -d"]),
    "U08": (["p 12.2.0 [a]", "a 1.0.0 [b] auto", "b 1.0.0 [a] auto"], "p", ["-p, -b, -a"]),
    "U09": (["q 1.0.0 [r ^2]", "r 1.0.0", "p 12.2.0"], "p", ["-p", "BROKEN_BEFORE q r"]),
    "U10": (["p 12.2.0 suspended"], "p", ["N SUSPENDED", "facts: p"]),
}


@pytest.mark.parametrize("row", UNINSTALLS)
def test_uninstalls(row: str) -> None:
    installed, names, lines = UNINSTALLS[row]
    assert as_text(resolved(case(PUBLISHED, installed, f"uninstall {names}"))) == lines


MAIN = {"name": "main", "packages": ["p 12.2.0 [d]", "d 1.0.0"]}
REPOSITORIES: Mapping[str, tuple[Sequence[Any], Sequence[str], str, Sequence[str]]] = {
    "R01": (
        [MAIN, {"name": "extra", "packages": ["d 9.0.0"]}], [], "install p@12.2.0",
        ["N AMBIGUOUS_REPOSITORY", "facts: d p"],
    ),
    "R02": (
        [MAIN, {"name": "extra", "priority": -1, "packages": ["d 9.0.0"]}], [], "install p@12.2.0",
        ["+d 1.0.0, +p 12.2.0"],
    ),
    "R03": (
        [{"name": "main", "packages": ["d 1.0.0 | 1.1.0"]}, {"name": "extra", "priority": 5, "packages": ["d 9.0.0"]}],
        ["d 1.0.0"], "update d", ["^d 1.1.0"],
    ),
    "R04a": (
        [MAIN, {"name": "extra", "priority": -1, "unreachable": True}], [], "install p@12.2.0",
        ["+d 1.0.0, +p 12.2.0", "REPOSITORY_UNAVAILABLE extra"],
    ),
    "R04b": (
        [MAIN, {"name": "extra", "priority": 1, "unreachable": True, "only": ["d*"]}], [], "install p@12.2.0",
        ["N REPOSITORY_UNAVAILABLE", "facts: d p"],
    ),
    "R05": (
        [{"name": "main", "packages": ["x 1.0.0"]}, {"name": "away", "unreachable": True, "priority": -1}],
        ["p 12.2.0 [d ^1] from away", "d 1.0.0 auto from gone"], "install x",
        ["+x 1.0.0", "REPOSITORY_UNAVAILABLE away"],
    ),
    "R07a": (["p 12.2.0 [d ^1]", "d 1.2.1 | 1.4.0 yanked"], [], "install p", ["+d 1.2.1, +p 12.2.0"]),
    "R07b": (
        ["p 12.2.0 [d ^1]", "d 1.2.1 | 1.4.0 yanked"], ["d 1.4.0"], "install p@12.2.0", ["+p 12.2.0", "YANKED d"],
    ),
    "R07c": (
        ["p 12.2.0 [d ^1.3]", "d 1.2.1 | 1.4.0 yanked"], [], "install p@12.2.0", ["N YANKED_ONLY", "facts: d p"],
    ),
    "a repository that is named": (
        [MAIN, {"name": "extra", "priority": -1, "packages": ["d 9.0.0"]}], [], "install extra/d", ["+d 9.0.0"],
    ),
    "a repository that is not configured": ([MAIN], [], "install gone/d", ["N REPOSITORY_UNKNOWN", "facts: d"]),
    "a repository that is disabled": (
        [{**MAIN, "enabled": False}], [], "install main/d", ["N REPOSITORY_UNKNOWN", "facts: d"],
    ),
    "a named repository without the package": (
        [{**MAIN, "only": ["p"]}], [], "install main/d", ["N PACKAGE_NOT_FOUND", "facts: d"],
    ),
    "an update whose repository is gone": (
        [MAIN], ["d 1.0.0 from gone"], "update d", ["", "held back: d"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", REPOSITORIES)
def test_repositories(row: str) -> None:
    published, installed, request, lines = REPOSITORIES[row]
    assert as_text(resolved(case(published, installed, request))) == lines


UP, DOWN = {"update_dependencies": True}, {"allow_downgrade": True}
P = "p 12.2.0 [d ^1.2.3]"
LATEST = "d*2.1.0 2.0.0 | 2.1.0 | 3.0.0"
CHOICES: Mapping[str, tuple[Sequence[str], Sequence[str], str, Mapping[str, Any], Sequence[str]]] = {
    "C01": ([P, D], ["d 1.2.1"], "install p", UP, ["^d 1.4.0, +p 12.2.0"]),
    "C02": (
        [P, D], ["d 2.0.0"], "install p", UP,
        ["N VERSION_CONFLICT", "downgrade: vd 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "C03": ([P, D], ["d 2.0.0"], "install p", DOWN, ["vd 1.4.0, +p 12.2.0"]),
    "C04": ([P, "d 1.2.1 | 1.3.0-rc.1"], [], "install p", {"prerelease": ["d"]}, ["+d 1.3.0-rc.1, +p 12.2.0"]),
    "C05": ([LATEST], ["d 2.0.0"], "update d", {}, ["^d 2.1.0"]),
    "C06": ([LATEST], ["d 2.0.0"], "update d@>=2", {}, ["^d 3.0.0"]),
    "C07": (["d 1.0.0 | 1.4.0 | 2.0.0"], ["d 1.0.0 wants ^1"], "update d", {}, ["^d 1.4.0"]),
    "C08": ([LATEST], ["d 3.0.0"], "update d", {}, [""]),
    "C09": (["d 1.4.0 | 1.4.0+1 | 1.4.0+2"], [], "install d@1.4.0+1", {}, ["+d 1.4.0+1"]),
    "C10": (["d 1.4.0 | 1.4.0+1 | 1.4.0+2"], [], "install d@1.4.0", {}, ["+d 1.4.0+2"]),
    "C11": (
        ["a 1.0.0 [d ^1] | 2.0.0 [d ^2]", "b 1.0.0 [d ^1]", "c 1.0.0 | 1.1.0", "d 1.0.0 | 1.1.0 | 2.0.0"],
        ["a 1.0.0 [d ^1]", "b 1.0.0 [d ^1]", "c 1.0.0", "d 1.0.0 auto"], "update-all", {},
        ["^c 1.1.0, ^d 1.1.0", "held back: a d"],
    ),
    "C12": (
        ["a 1.0.0 | 2.0.0", "b 1.0.0 | 2.0.0"], ["a 1.0.0 pinned", "b 1.0.0"], "update-all", {},
        ["^b 2.0.0", "held back: a"],
    ),
    "C13": ([PP, PD], ["p 1.0.0 [d ^1]", "d 1.0.0 auto"], "update-all", {}, ["^d 2.0.0, ^p 2.0.0"]),
    "C14": ([D], ["p 12.2.0 [d]", "d 1.4.0 auto"], "uninstall p", {"keep_unused": True}, ["-p"]),
    "C14, by name": ([D], ["p 12.2.0 [d]", "d 1.4.0 auto"], "uninstall p", {"keep": ["d"]}, ["-p"]),
    "C15": ([D], CHAIN, "uninstall d", {"cascade": True}, ["-p, -e, -d"]),
    "C16": (
        ["d 1.0.0 | 2.0.0"], ["d 2.0.0"], "install d@1.0.0", {}, ["N DOWNGRADE", "downgrade: vd 1.0.0", "facts: d"],
    ),
    "C17": (["d 1.0.0 | 1.4.0"], ["d 1.0.0"], "install d@^1", {}, [""]),
    "C18": ([D], ["p 12.2.0 [d]", "d 1.4.0 auto pinned"], "uninstall p", {}, ["-p"]),
    "C19": (
        ["p 1.0.0 [d ^1] | 2.0.0", "d 1.0.0"], ["p 1.0.0 [d ^1]", "d 1.0.0"], "update p@2.0.0; uninstall d", {},
        ["^p 2.0.0, -d"],
    ),
    "C20": (["p 1.0.0 [d]", "d 1.0.0"], ["d 1.0.0 auto"], "install p", {}, ["+p 1.0.0"]),
    "C21": (["p 1.0.0"], [], "update p", {}, ["N NOT_INSTALLED", "facts: p"]),
    "C22": (["p 1.0.0"], [], "uninstall p", {}, ["N NOT_INSTALLED", "facts: p"]),
    "C23": (
        ["d 1.0.0 | 2.0.0"], ["d 1.0.0"], "update d@3.0.0", {},
        ["N NO_MATCHING_VERSION", "other-version: ^d 2.0.0", "facts: d"],
    ),
    "C24": ([P, D], ["d 1.2.1 suspended"], "install p", {}, ["N SUSPENDED", "facts: d p"]),
    "C25": (
        ["p 12.2.0 [d >=1.4]", D, "x 1.0.0 [d ^1] | 2.0.0 [d ^2]"], ["d 1.2.1", "x 1.0.0 [d ^1]"], "install p", {},
        ["R VERSION_CONFLICT", "update: ^d 1.4.0, +p 12.2.0", "facts: d p"],
    ),
    "C26": (
        [PP, PD, "c 1.0.0 [d ^1]"], ["p 1.0.0 [d ^1]", "d 1.0.0 auto", "c 1.0.0 [d ^1] auto"], "update-all", {},
        ["^d 2.0.0, ^p 2.0.0, -c"],
    ),
    "C27": (["p 1.0.0-rc.1"], [], "install p", {}, ["N PRERELEASE_ONLY", "facts: p"]),
    "C28": (["p 1.0.0 | 2.0.0-rc.1"], [], "install p@2.0.0-rc.1", {}, ["+p 2.0.0-rc.1"]),
    "C29": (
        ["p0 2.0.0 [p2 =2.0.0]", "p1 2.0.0 [p0 =2.0.0] | 1.0.0", "p2 2.0.0 [p1 =3.0.0] | 1.0.0 [p1 >=1 <3]"], [],
        "install p2@*", {}, ["+p1 1.0.0, +p2 1.0.0"],
    ),
    "C31": (["a 1.0.0 | 2.0.0"], ["a 1.0.0 pinned"], "update a", {}, ["", "held back: a"]),
    "C32": (["a 1.0.0 | 2.0.0"], ["a 1.0.0 pinned"], "update a@2.0.0", {}, ["N PINNED", "unpin: ^a 2.0.0", "facts: a"]),
    "data that is kept": (
        ["p 1.0.0 [d ^1] | 2.0.0 [d ^2]", PD, "c 1.0.0 [d ^1]"],
        ["p 1.0.0 [d ^1]", "d 1.0.0 auto", "c 1.0.0 [d ^1] auto"], "update p@2.0.0",
        {**UP, "keep": ["c"]},
        ["N VERSION_CONFLICT", "remove: ^d 2.0.0, ^p 2.0.0, -c", "facts: c d p"],
    ),
    "a platform": (
        ["p 1.0.0 | 2.0.0"], [], "install p@>=2", {"platform": "0.3.0-rc.1"}, ["+p 2.0.0"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", CHOICES)
def test_consent_and_choice(row: str) -> None:
    published, installed, request, options, lines = CHOICES[row]
    assert as_text(resolved(case(published, installed, request, options))) == lines


def test_names_are_mapped_to_a_repository() -> None:
    """Row C30."""
    mapped = {"name": "extra", "only": ["d"], "packages": ["d 1.0.0", "p 9.0.0"], "priority": 1}
    written = case([{"name": "main", "packages": ["p 12.2.0 [d]", "d 9.0.0"]}, mapped], [], "install p")
    answer = resolved(written)
    assert as_text(answer) == ["+d 1.0.0, +p 12.2.0"]
