"""Worlds of packages that may share resources and name objects of each other, and what a platform then has."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.apply.packages import a_rule, an_endpoint, an_object

NAMES = ("a", "b", "c", "d")
VERSIONS = ("1.0.0", "2.0.0")

_SLOTS = ("one", "two")
_DISPLAY_NAMES = ("first", "second", "third")
"""The display names of objects, whose specs are equal where these are."""


@dataclass(frozen=True)
class Release:
    """
    A version of a package.

    Attributes:
        requires: The packages that it requires.
        objects: Its objects.
    """

    requires: tuple[str, ...]
    objects: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Published:
    """
    The packages of a repository.

    Attributes:
        releases: The versions, by package and version.
    """

    releases: Mapping[tuple[str, str], Release] = field(default_factory=dict)

    def rows(self, versions: Iterable[str] = VERSIONS) -> list[str]:
        """The packages as in ``tests.packages.rows``."""
        return [
            f"{name} "
            + " | ".join(
                f"{version} [{', '.join(self.releases[name, version].requires)}]".removesuffix(" []")
                for version in versions
            )
            for name in NAMES
        ]

    def objects(self) -> dict[str, tuple[dict[str, Any], ...]]:
        """The objects by ``NAME@VERSION``."""
        return {f"{name}@{version}": each.objects for (name, version), each in self.releases.items()}

    def content(self, installed: Mapping[str, str]) -> Counter[tuple[str, str, frozenset[str]]]:
        """Kind, display name and names of labels of each resource of a platform with these versions."""
        labels: dict[tuple[str, str], frozenset[str]] = {}
        repeated: Counter[tuple[str, str, frozenset[str]]] = Counter()
        for name, version in installed.items():
            for item in self.releases[name, version].objects:
                kind, display_name = item["kind"], item["spec"]["name"]
                own = frozenset(
                    self.display_name(installed, name, each["name"]) for each in item["spec"].get("associations", ())
                )
                if kind == "Dashboard":
                    repeated[kind, display_name, own] += 1
                else:
                    labels[kind, display_name] = labels.get((kind, display_name), frozenset()) | own
        return repeated + Counter((*key, own) for key, own in labels.items())

    def display_name(self, installed: Mapping[str, str], package: str, label: str) -> str:
        """The display name of what an object of *package* calls *label*."""
        owner, _, name = label.rpartition(".")
        owner = owner or package
        [found] = [
            each["spec"]["name"]
            for each in self.releases[owner, installed[owner]].objects
            if (each["kind"], each["metadata"]["name"]) == ("Label", name)
        ]
        return str(found)

    def buckets(self, installed: Mapping[str, str]) -> set[tuple[str, str, str]]:
        """The buckets: package, name, display name."""
        return {
            (name, item["metadata"]["name"], item["spec"]["name"])
            for name, version in installed.items()
            for item in self.releases[name, version].objects
            if item["kind"] == "Bucket"
        }


@st.composite
def published(draw: st.DrawFn) -> Published:
    """Packages with two versions each, of which later ones may require earlier ones."""
    releases: dict[tuple[str, str], Release] = {}
    for number, name in enumerate(NAMES):
        for version in VERSIONS:
            required = st.sets(st.sampled_from(NAMES[:number]), max_size=2) if number else st.just(set[str]())
            requires = tuple(sorted(draw(required)))
            releases[name, version] = Release(requires, tuple(_objects(draw, releases, name, requires)))
    return Published(releases)


def _objects(
    draw: st.DrawFn, releases: Mapping[tuple[str, str], Release], package: str, requires: Iterable[str]
) -> Iterable[dict[str, Any]]:
    names = draw(st.permutations(_DISPLAY_NAMES))
    own = draw(st.lists(st.sampled_from(_SLOTS), unique=True))
    labels = [an_object("Label", slot, f"label {name}") for slot, name in zip(own, names, strict=False)]
    usable = [*own]
    endpoints = []
    for required in requires:
        for item in releases[required, VERSIONS[0]].objects:
            name = item["metadata"]["name"]
            usable += [f"{required}.{name}"] if item["kind"] == "Label" else []
            endpoints += [f"{required}.{name}"] if item["kind"] == "NotificationEndpointPagerDuty" else []

    def some() -> list[str]:
        return draw(st.lists(st.sampled_from(usable), unique=True, max_size=2)) if usable else []

    yield from labels
    names = draw(st.permutations(_DISPLAY_NAMES))
    for slot, name in zip(draw(st.lists(st.sampled_from(_SLOTS), unique=True)), names, strict=False):
        yield an_object("Bucket", slot, f"bucket {name}", some())
    if draw(st.booleans()):
        yield an_object("Dashboard", "board", "board", some())
    if draw(st.booleans()):
        endpoints.append("pager")
        yield an_endpoint("PagerDuty", "pager", f"pager {draw(st.sampled_from(_DISPLAY_NAMES))}")
    has_rule: bool = draw(st.booleans())
    if endpoints and has_rule:
        yield a_rule("rule", draw(st.sampled_from(endpoints)), f"rule of {package}")


_some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
_versioned = st.tuples(st.sampled_from(NAMES), st.sampled_from(["", *VERSIONS])).map(
    lambda pair: "@".join(filter(None, pair))
)
changes = st.one_of(
    st.lists(_versioned, min_size=1, max_size=3, unique_by=lambda text: text[0]).map(
        lambda names: f"install {' '.join(names)}"
    ),
    _some_names.map(lambda names: f"update {' '.join(names)}"),
    _some_names.map(lambda names: f"uninstall {' '.join(names)}"),
    st.just("update-all"),
)
"""Changes as words."""
