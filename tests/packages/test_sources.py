"""Which repository serves a package, and why none does."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_svc.resolution.model import ConflictCode, PackageRequest, Repository, Request
from planner_svc.resolution.sources import NoSource, Source, Sources
from services.packages.index_files import PackageVersions

FAULT = "base/versions.yaml: no YAML"
SAME_PRIORITY = "which have the same priority; name one of them, or give them different priorities"


def repository(name: str, priority: int = 0, fault: str = "", **changes: object) -> Repository:
    """A repository that lists base, with a fault or without."""
    packages = {} if fault else {"base": PackageVersions("base", {})}
    return Repository(name, priority, packages=packages, faults={"base": fault} if fault else {}, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("repositories", "source"),
    [
        ([repository("low"), repository("high", 1)], "high"),
        ([repository("low"), repository("high", 1, is_enabled=False)], "low"),
        ([repository("low"), repository("high", 1, only=("web-*",))], "low"),
        ([repository("low"), repository("high", 1, only=("ba*",))], "high"),
        (
            [repository("low"), repository("high", 1, fault=FAULT)],
            (ConflictCode.PACKAGE_NOT_FOUND, f"repository high has base with a fault: {FAULT}"),
        ),
        ([repository("low", fault=FAULT), repository("high", 1)], "high"),
        (
            [repository("a"), repository("b", fault=FAULT)],
            (ConflictCode.AMBIGUOUS_REPOSITORY, f"base is in a and b, {SAME_PRIORITY}"),
        ),
        (
            [repository("low"), repository("high", 1, problem="no answer")],
            (ConflictCode.REPOSITORY_UNAVAILABLE, "repository high cannot be read: no answer"),
        ),
        (
            [repository("low"), repository("high", 1, problem="")],
            (ConflictCode.REPOSITORY_UNAVAILABLE, "repository high does not answer"),
        ),
        ([], (ConflictCode.PACKAGE_NOT_FOUND, "no repository has base (none is configured and enabled)")),
        (
            [repository("low", is_enabled=False)],
            (ConflictCode.PACKAGE_NOT_FOUND, "no repository has base (none is configured and enabled)"),
        ),
        (
            [Repository("main"), repository("a", only=("web-*",))],
            (ConflictCode.PACKAGE_NOT_FOUND, "no repository has base (asked: main; left out by the patterns of: a)"),
        ),
        (
            [Repository(f"r{number:03}") for number in range(1_000)],
            (
                ConflictCode.PACKAGE_NOT_FOUND,
                f"no repository has base (asked: {', '.join(f'r{number:03}' for number in range(10))} and 990 more)",
            ),
        ),
        (
            [repository(f"r{number:03}") for number in range(1_000)],
            (
                ConflictCode.AMBIGUOUS_REPOSITORY,
                f"base is in {', '.join(f'r{number:03}' for number in range(10))} and 990 more, {SAME_PRIORITY}",
            ),
        ),
    ],
)
def test_no_repository_takes_the_place_of_one_that_comes_first(
    repositories: list[Repository], source: str | tuple[ConflictCode, str]
) -> None:
    assert _source(Sources(repositories, {}, Request())) == source
    assert _source(Sources(repositories[::-1], {}, Request())) == source


@pytest.mark.parametrize(
    ("repositories", "source"),
    [
        ([repository("low"), repository("high", 1)], "low"),
        (
            [repository("low", fault=FAULT), repository("high", 1)],
            (ConflictCode.PACKAGE_NOT_FOUND, f"repository low has base with a fault: {FAULT}"),
        ),
        ([repository("high")], (ConflictCode.REPOSITORY_UNKNOWN, "repository low is not configured")),
        ([repository("low", is_enabled=False)], (ConflictCode.REPOSITORY_UNKNOWN, "repository low is disabled")),
        (
            [repository("low", only=("web-*",))],
            (ConflictCode.PACKAGE_NOT_FOUND, "the patterns of repository low leave base out: web-*"),
        ),
    ],
)
def test_a_repository_that_is_named_is_the_only_one(
    repositories: list[Repository], source: str | tuple[ConflictCode, str]
) -> None:
    request = Request((PackageRequest("base", repository="low"),))
    assert _source(Sources(repositories, {}, request)) == source


def _source(sources: Sources) -> str | tuple[ConflictCode, str]:
    match sources.of("base"):
        case Source(name):
            return name
        case NoSource(code, text):
            return code, text


_repositories = st.lists(
    st.builds(
        Repository,
        st.sampled_from(["a", "b", "c", "d"]),
        st.integers(0, 2),
        st.sampled_from([(), ("ba*",), ("web-*",)]),
        st.booleans(),
        st.sampled_from([None, "no answer"]),
        st.sampled_from([{}, {"base": PackageVersions("base", {})}]),
    ),
    unique_by=lambda each: each.name,
)


@given(_repositories, st.sampled_from(["", "a", "d"]))
def test_the_source_is_clear_once_nothing_is_needed(repositories: list[Repository], named: str) -> None:
    """Repositories count as read as soon as they are needed; any other answer of the rest changes nothing."""
    request = Request((PackageRequest("base", repository=named or None),))
    unread = {each.name for each in repositories if each.is_enabled}
    while True:
        as_read = [replace(each, problem=None, packages={}) if each.name in unread else each for each in repositories]
        needed = Sources(as_read, {}, request).needed("base", unread)
        if not needed:
            break
        assert unread.issuperset(needed)
        unread.difference_update(needed)
    sources = [Sources(each, {}, request).of("base") for each in (as_read, repositories)]
    assert sources[0] == sources[1]
    away = [replace(each, problem="away") if each.name in unread else each for each in repositories]
    assert Sources(away, {}, request).of("base") == sources[0]
