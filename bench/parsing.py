"""Measures how fast package text is parsed, compared with PyYAML on the same text."""

import multiprocessing
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import yaml
from yaml._yaml import CParser

from bench.figures import Figure, median_of, seconds
from bench.package import Mix, package_text
from parser_svc.document_cache import DocumentCache
from parser_svc.package import ParseOptions, parse
from parser_svc.sources import Source
from services.rpc.gc_pause import gc_paused
from services.settings import DOCUMENT_CACHE_BYTES

RUNS = 5


def parsing_corpus(folder: Path | None, count: int = 97) -> list[Figure]:
    """
    Parse published packages, each by itself, and read the same YAML with PyYAML alone.

    Args:
        folder: The folder of the packages; None: *count* generated ones of the same size are used instead.
        count: The number of generated packages.
    """
    texts = [path.read_bytes().decode() for path in sorted(folder.glob("*.yml"))] if folder else _stand_ins(count)
    size = f"{len(texts)} {'real' if folder else 'generated'} packages"
    return [
        *_rates(size, texts, lambda text: parse([Source("bench.yml", text)], {}, ParseOptions(warn=False))),
        _rate("  with all warnings and their places", texts, lambda text: parse([Source("bench.yml", text)], {})),
    ]


def parsing_objects(count: int, mix: Mix) -> list[Figure]:
    """Parse one package of *count* objects, in a process of its own."""
    text = package_text(count, mix)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        taken, before, after = process.submit(_parse_once, text).result()
    return [
        Figure("parse: one package", f"{count:,} {mix.value}", f"{seconds(taken)}, {len(text) / 1e6 / taken:.1f} MB/s"),
        Figure("  peak memory", "", f"{after / 1e6:.0f} MB, {before / 1e6:.0f} of them before", "< 300 MB"),
    ]


def parsing_floors(count: int, mix: Mix) -> list[Figure]:
    """Parse one package of *count* objects, new and known from before, beside libyaml alone; CPU time, least of 5."""
    text = package_text(count, mix)
    sources, cache = [Source("bench.yml", text)], DocumentCache(DOCUMENT_CACHE_BYTES)
    floor = _cpu(lambda: CParser(text).raw_parse())
    taken = {
        "parse: CPU time, a new text": _cpu(lambda: parse(sources, {})),
        "  new, and kept in the cache": _cpu(lambda: parse(sources, {}, cache=DocumentCache(DOCUMENT_CACHE_BYTES))),
        "  all documents known": _cpu(lambda: parse(sources, {}, cache=cache)),
    }
    return [
        Figure(
            what,
            f"{count:,} {mix.value}" if not what.startswith(" ") else "",
            f"{cpu * 1e6 / count:.1f} ms for 1,000, {cpu / floor:.1f} times libyaml's {floor * 1e6 / count:.1f} ms",
            "8 times" if not what.startswith(" ") else "",
        )
        for what, cpu in taken.items()
    ]


def _cpu(work: Callable[[], object]) -> float:
    """Seconds of CPU time, the least of some runs, as parsers run: without collections in between."""
    taken = []
    for _ in range(RUNS):
        with gc_paused():
            before = time.process_time()
            work()
            taken.append(time.process_time() - before)
    return min(taken)


def _rates(size: str, texts: Sequence[str], parse_one: Callable[[str], object]) -> list[Figure]:
    ours = _taken(texts, parse_one)
    events = _taken(texts, lambda text: deque(yaml.parse(text, Loader=yaml.CSafeLoader), maxlen=0))
    loader = _taken(texts, lambda text: deque(yaml.load_all(text, Loader=yaml.CSafeLoader), maxlen=0))
    million_bytes = sum(len(text.encode()) for text in texts) / 1e6
    return [
        Figure("parse: YAML text to validated package", size, f"{million_bytes / ours:.1f} MB/s", ">= 8 MB/s"),
        Figure("  PyYAML's CSafeLoader, trees only", "", f"{million_bytes / loader:.1f} MB/s"),
        Figure("  PyYAML's C events, no trees", "", f"{million_bytes / events:.1f} MB/s"),
        Figure("  time of ours / time of CSafeLoader", "", f"{ours / loader:.2f}", "< 1"),
        Figure("  time of ours / time of C events", "", f"{ours / events:.2f}", "<= 2.5"),
    ]


def _rate(what: str, texts: Sequence[str], work: Callable[[str], object]) -> Figure:
    return Figure(what, "", f"{sum(len(text.encode()) for text in texts) / 1e6 / _taken(texts, work):.1f} MB/s")


def _taken(texts: Sequence[str], work: Callable[[str], object]) -> float:
    return median_of(RUNS, lambda: [work(text) for text in texts])


def _parse_once(text: str) -> tuple[float, int, int]:
    """Seconds, and the peak memory before and after."""
    before, started = _peak(), time.perf_counter()
    parse([Source("bench.yml", text)], {})
    return time.perf_counter() - started, before, _peak()


def _peak() -> int:
    """The peak resident memory of this process so far, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _stand_ins(count: int) -> list[str]:
    return [package_text(40, seed=number) for number in range(count)]
