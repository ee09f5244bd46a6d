"""
The corpora of packages and cases: our own in ``tests/fixtures``, and recorded ones beside this checkout.

Tests run over both. They are parametrised by paths, and read a file when they need it, so that no worker keeps the
contents of a corpus.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from parser_svc.envelope import RawObject
from parser_svc.sources import Source, read_sources
from services.jsonnet.evaluators import preferred, program
from services.jsonnet.imports import Imports
from tests import needs

FIXTURES = needs.ROOT / "tests" / "fixtures"
RECORDED = needs.SHARED / "golden"

_OWN_PACKAGES = FIXTURES / "packages"
REFUSED_BY_INFLUXDB = _OWN_PACKAGES / "refused-by-influxdb.yml"
"""The one package of our own that a platform InfluxDB refuses."""

_RECORDED_PACKAGES = RECORDED / "parse" / "packages"
_ENDINGS = (".yml", ".json", ".jsonnet")
_SUMMARY = ".summary.json"


def own_packages() -> list[Path]:
    """Packages of our own writing, in every encoding; each is valid and gets no warnings."""
    return packages_in(_OWN_PACKAGES)


def recorded_packages() -> list[Path]:
    """Recorded packages; none without ``../shared``."""
    return packages_in(_RECORDED_PACKAGES)


def package_parameters(without: Path | None = None) -> list[Any]:
    """A parameter for each package but one: recorded ones are slow, and run with ``--faults`` but for every fourth."""
    own = [path for path in own_packages() if path != without]
    recorded = recorded_packages() or [_RECORDED_PACKAGES]
    return [
        *parameters(own, recorded[::4], pytest.mark.slow),
        *parameters([], (path for number, path in enumerate(recorded) if number % 4), pytest.mark.faults),
    ]


def corpus_parameters(*marks: pytest.MarkDecorator) -> list[Any]:
    """A parameter for all packages of a corpus, as folder; *marks* are those of the recorded one."""
    return parameters([_OWN_PACKAGES], [_RECORDED_PACKAGES], *marks)


def parameters(own: Iterable[Path], recorded: Iterable[Path], *marks: pytest.MarkDecorator) -> list[Any]:
    """A parameter for each file or folder; *marks* are those of recorded ones, which need ``../shared``."""
    return [
        *(pytest.param(path, id=f"own-{path.stem}") for path in own),
        *(pytest.param(path, id=f"recorded-{path.stem}", marks=(needs.shared(path), *marks)) for path in recorded),
    ]


def package_text(path: Path) -> str:
    """The text of a package, in YAML or JSON: a program is evaluated."""
    text = path.read_bytes().decode()
    if path.suffix != ".jsonnet":
        return text
    return program(preferred())(text, Imports(None, most=0)).strip()


def package_objects(path: Path) -> list[RawObject]:
    """The objects of a package as its source has them."""
    objects = read_sources([Source(path.stem, package_text(path))])
    return [each for each in objects if isinstance(each, RawObject)]


def summary_path(path: Path) -> Path:
    """The file with the expected summary of a package."""
    return path.with_name(path.stem + _SUMMARY)


def cases_in(path: Path) -> list[Mapping[str, Any]]:
    """The cases of a file with one JSON object in each line."""
    return [json.loads(line) for line in path.read_bytes().decode().splitlines()]


def packages_in(folder: Path) -> list[Path]:
    """The packages of a corpus, sorted: the files that have a summary."""
    # A recorded summary and the index of the recorded packages end in .json, too.
    summarised = {path.name.removesuffix(_SUMMARY) for path in folder.glob(f"*{_SUMMARY}")}
    return sorted(path for path in folder.glob("*") if path.suffix in _ENDINGS and path.stem in summarised)
