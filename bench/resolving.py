"""Measures resolutions of packages: many versions without conflict, a large stack, and a conflict without end."""

import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence

from bench.figures import Figure, Seconds, seconds
from planner_svc.resolution.bounds import Bounds
from planner_svc.resolution.model import Conflict, PackageRequest, Repository, Request, Resolution
from planner_svc.resolution.resolve import resolve
from services.packages.index_files import PackageVersions, PublishedVersion
from services.packages.installed import InstalledPackage
from services.packages.manifest import Requirement
from services.packages.ranges import Range
from services.packages.versions import Version

PACKAGES, VERSIONS = 1_000, 50
INSTALLED = 200
CHAIN = 100

_REQUIREMENTS = 5
_REQUESTS = 50
_RUNS = 3


def resolving(packages: int = PACKAGES, versions: int = VERSIONS) -> list[Figure]:
    """The figures of resolutions, each the least CPU time of three, and the memory that one of them adds."""
    size = f"{packages:,} x {versions}"
    chain = f"{max(2, packages * CHAIN // PACKAGES)} x {versions}"
    return [
        Figure("resolve: no conflict", size, _least(no_conflict(packages, versions)), "< 1 s"),
        Figure("  most memory, of this and of the conflict", "", _memory(packages, versions), "150 MB"),
        Figure("resolve: one of the installed to update", f"{INSTALLED:,}", _least(one_update(versions)), "< 100 ms"),
        Figure("resolve: a conflict along a chain", chain, _once(long_chain(packages, versions)), "< 8 s"),
    ]


def no_conflict(packages: int, versions: int) -> Callable[[], Resolution | Conflict]:
    """An installation of many packages, all of whose requirements can be met."""
    repository = layered(packages, versions)
    request = Request(tuple(PackageRequest(_name(number)) for number in range(min(_REQUESTS, packages))))
    return lambda: resolve([repository], [], request, bounds=_bounds())


def one_update(versions: int) -> Callable[[], Resolution | Conflict]:
    """An update of one package of a large stack, whose requirements leave it free."""
    repository = layered(INSTALLED, versions)
    everything = Request(tuple(PackageRequest(name) for name in repository.packages))
    answer = resolve([repository], [], everything)
    if isinstance(answer, Conflict):
        raise TypeError(answer.text)
    newest = {change.name: change.new for change in answer.changes}
    installed = [
        InstalledPackage(name, each.version, repository.name, requires=each.requires)
        for name, package in repository.packages.items()
        for each in package.versions.values()
        # The first package is required by no other one, so nothing but its own version changes.
        if each.version == (_version(0) if name == _name(0) else newest[name])
    ]
    request = Request(updates=(PackageRequest(_name(0)),))
    return lambda: resolve([repository], installed, request, bounds=_bounds())


def long_chain(packages: int, versions: int) -> Callable[[], Resolution | Conflict]:
    """A chain in which each version goes with one version of the next package, and the last ones with none."""
    length = max(2, packages * CHAIN // PACKAGES)

    def requirements(number: int, minor: int) -> tuple[Requirement, ...]:
        if number == length:
            return ()
        return (Requirement(_name(number + 1), Range.parse(_next(number, length, minor))),)

    chain = {
        _name(number): _package(number, [requirements(number, minor) for minor in range(versions)])
        for number in range(length + 1)
    }
    request = Request((PackageRequest(_name(0), Range.parse("*")),))
    return lambda: resolve([Repository("main", packages=chain)], [], request, bounds=_bounds())


def _next(number: int, length: int, minor: int) -> str:
    return f"1.{minor}.0" if number < length - 1 else "^2"


def layered(packages: int, versions: int) -> Repository:
    """Packages that require later ones, with ranges that always leave one version."""
    chance = random.Random(1)
    texts = [Range.parse(f"^1.{minor}") for minor in range(max(1, versions // 2))]

    def requirements(number: int) -> tuple[Requirement, ...]:
        later = range(number + 1, packages)
        numbers = sorted(chance.sample(later, min(_REQUIREMENTS, len(later))))
        return tuple(Requirement(_name(each), chance.choice(texts)) for each in numbers)

    packages_by_name = {
        _name(number): _package(number, [requirements(number) for _ in range(versions)]) for number in range(packages)
    }
    return Repository("main", packages=packages_by_name)


def _package(number: int, requirements: Sequence[tuple[Requirement, ...]]) -> PackageVersions:
    """A package with a version for each of *requirements*."""
    published = [PublishedVersion(_version(minor), digest="", requires=each) for minor, each in enumerate(requirements)]
    return PackageVersions(_name(number), {each.version: each for each in published})


def _name(number: int) -> str:
    return f"package-{number:04}"


def _version(minor: int) -> Version:
    return Version.parse(f"1.{minor}.0")


def _bounds() -> Bounds:
    return Bounds(clock=time.monotonic)


def _least(work: Callable[[], object]) -> str:
    return seconds(min(_cpu_time(work) for _ in range(_RUNS)))


def _once(work: Callable[[], object]) -> str:
    return seconds(_cpu_time(work))


def _cpu_time(work: Callable[[], object]) -> Seconds:
    started = time.process_time()
    work()
    return time.process_time() - started


def _memory(packages: int, versions: int) -> str:
    """In a process of its own, as counting memory makes everything slow."""
    command = [sys.executable, "-m", "bench.resolving", str(packages), str(versions)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return f"{int(printed) / 1e6:.0f} MB"


def _added(packages: int, versions: int) -> int:
    """The most bytes that a resolution has at once, without what is published."""
    works = no_conflict(packages, versions), long_chain(packages, versions)
    tracemalloc.start()
    for work in works:
        work()
    return tracemalloc.get_traced_memory()[1]


if __name__ == "__main__":
    print(_added(int(sys.argv[1]), int(sys.argv[2])))
