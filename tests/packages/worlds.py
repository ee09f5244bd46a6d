"""Random worlds of packages, with what is installed and requested, in the form of the recorded cases."""

from typing import Any

from hypothesis import strategies as st

NAMES = "abcdef"
VERSIONS = ("1.0.0", "1.1.0", "1.2.0", "2.0.0", "2.1.0", "3.0.0", "2.0.0-rc.1", "3.0.0-alpha.1", "1.1.0+1", "1.1.0+2")
RANGES = (
    *("^1", "^2", ">=1 <3", "*", "=1.1.0", ">=2", "<2", "!=1.1.0", "~1.1", ">=1.1", "^1 || ^3", "<=2.0.0"),
    *(">=2.0.0-rc.1", "^2.0.0-0"),
)

Draw = st.DrawFn

_versions = st.sampled_from(VERSIONS)
_ranges = st.sampled_from(RANGES)


def _often(draw: Draw, percent: int) -> bool:
    return draw(st.integers(1, 100)) <= percent


def _flags(draw: Draw, **percents: int) -> dict[str, bool]:
    return {name: True for name, percent in percents.items() if _often(draw, percent)}


@st.composite
def _requires(draw: Draw, name: str, names: str, percent: int) -> list[dict[str, str]]:
    requires = []
    for other in [*names, "nowhere"]:
        if other != name and _often(draw, 3 if other == "nowhere" else percent):
            versions = {"version": draw(_ranges)} if _often(draw, 70) else {}
            requires.append({"name": other, **versions})
    return requires


@st.composite
def _package(draw: Draw, name: str, names: str, percent: int) -> dict[str, Any]:
    versions = draw(st.lists(_versions, min_size=1, max_size=4, unique=True))
    package: dict[str, Any] = {
        "versions": [
            {
                "version": version,
                "requires": draw(_requires(name, names, percent)),
                **({"yanked": "loses data"} if _often(draw, 12) else {}),
            }
            for version in versions
        ]
    }
    return {**package, "latest": draw(st.sampled_from(versions))} if _often(draw, 25) else package


@st.composite
def _installed(draw: Draw, name: str, names: str, package: dict[str, Any], percent: int) -> dict[str, Any]:
    published = draw(st.sampled_from(package["versions"]))
    other = {"version": draw(_versions), "requires": draw(_requires(name, names, percent))}
    version = published if _often(draw, 85) else other
    return {
        "name": name,
        "version": version["version"],
        "requires": version["requires"],
        "repository": "main" if _often(draw, 95) else "gone",
        "origin": draw(st.sampled_from(["manual", "dependency"])),
        **draw(st.sampled_from([*[{}] * 8, {"pinned": True}, {"suspended": True}])),
        **({"requested": draw(_ranges)} if _often(draw, 10) else {}),
    }


@st.composite
def _requests(draw: Draw, names: str, installed: set[str]) -> dict[str, Any]:
    request: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)):
        verb = draw(st.sampled_from(["update", "uninstall", "install"])) if name in installed else "install"
        versions = {"version": draw(_ranges | _versions)} if _often(draw, 50) else {}
        request.setdefault(verb, []).append(name if verb == "uninstall" else {"name": name, **versions})
    if _often(draw, 15):
        request["update_all"] = True
    return request


@st.composite
def worlds(draw: Draw) -> dict[str, Any]:
    """Worlds of up to six packages with up to four versions."""
    names = NAMES[: draw(st.integers(2, len(NAMES)))]
    # In larger worlds, brute force takes long when much is required.
    percent = draw(st.sampled_from([15, 30, 45]))
    packages = {name: draw(_package(name, names, percent)) for name in names}
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    installed = [draw(_installed(name, names, packages[name], percent)) for name in chosen]
    options: dict[str, Any] = _flags(draw, update_dependencies=40, allow_downgrade=20, cascade=10, keep_unused=10)
    if _often(draw, 15):
        options["prerelease"] = [draw(st.sampled_from(names))]
    if _often(draw, 10):
        options["keep"] = [draw(st.sampled_from(names))]
    repositories: list[dict[str, Any]] = [{"name": "main", "packages": packages}]
    if _often(draw, 20):
        name = draw(st.sampled_from(names))
        more: dict[str, Any] = draw(st.sampled_from([{}, {"unreachable": True}, {"only": ["a*"]}, {"enabled": False}]))
        priority = draw(st.sampled_from([-1, 0, 1]))
        repositories.append({"name": "extra", "priority": priority, "packages": {name: packages[name]}, **more})
    return {
        "repositories": repositories,
        "installed": installed,
        "request": draw(_requests(names, set(chosen))),
        "options": options,
    }


@st.composite
def shuffled(draw: Draw, value: Any) -> Any:
    """The same value with its lists and maps in another order."""
    if isinstance(value, dict):
        return {key: draw(shuffled(value[key])) for key in draw(st.permutations(list(value)))}
    if isinstance(value, list):
        return [draw(shuffled(each)) for each in draw(st.permutations(value))]
    return value
