"""How fast package text is read, beside PyYAML on the same text."""

from collections import deque

import yaml

from bench.figures import Figure, median_of
from bench.package import Mix, package_text
from parser_svc.package import parse
from parser_svc.sources import Source

RUNS = 5


def parsing(count: int, mix: Mix) -> list[Figure]:
    """Parse, with validation, a package of *count* objects; and have PyYAML do its part of that."""
    text = package_text(count, mix)
    size = f"{count:,} {mix.value}"
    ours = median_of(RUNS, lambda: parse([Source("bench.yml", text)], {}))
    events = median_of(RUNS, lambda: deque(yaml.parse(text, Loader=yaml.CSafeLoader), maxlen=0))
    loader = median_of(RUNS, lambda: deque(yaml.load_all(text, Loader=yaml.CSafeLoader), maxlen=0))
    million_bytes = len(text.encode()) / 1e6
    return [
        Figure("parse: YAML text to validated package", size, f"{million_bytes / ours:.1f} MB/s", ">= 8 MB/s"),
        Figure("  PyYAML's CSafeLoader, trees only", "", f"{million_bytes / loader:.1f} MB/s"),
        Figure("  PyYAML's C events, no trees", "", f"{million_bytes / events:.1f} MB/s"),
        Figure("  time of ours / time of CSafeLoader", "", f"{ours / loader:.2f}"),
        Figure("  time of ours / time of C events", "", f"{ours / events:.2f}", "<= 2.5"),
    ]
