"""How much memory the values of index files take, about, by measurement."""

from services.packages.index_files import PackageVersions, RepositoryIndex

_FILE = 2048
_PACKAGE = 450
_VERSION = 300
_PATH = 80
_REQUIREMENT = 100
_COMPARATOR = 250


def memory_of(value: RepositoryIndex | PackageVersions) -> int:
    """The memory of a value in bytes; a range that several versions have counts once, as they share it."""
    if isinstance(value, RepositoryIndex):
        return _FILE + sum(_PACKAGE + len(each.description) for each in value.packages.values())
    size = _FILE
    ranges = {}
    for each in (*value.versions.values(), *value.removed_versions.values()):
        size += _VERSION + len(each.yanked or "") + _REQUIREMENT * len(each.requires)
        size += sum(_PATH + len(path) for path in each.files[1:])
        ranges.update({id(own): own for own in (each.platform, *(of.range for of in each.requires)) if own})
    return size + _COMPARATOR * sum(len(group.comparators) for each in ranges.values() for group in each.groups)
