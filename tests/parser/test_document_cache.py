"""The cache of documents: it changes no result, stays within its bound, and holds no values of requests."""

import random
import re
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.package import Mix, package_text
from parser_svc.document_cache import CachedObject, DocumentCache
from parser_svc.package import ParseOptions, parse
from parser_svc.sources import Source
from services.core.errors import PkgerError
from services.core.model import LABEL, Key
from services.settings import Bounds, SettingInvalid, load
from services.syntax.yaml_reader import Stream, read_stream
from tests.corpora import corpus_parameters, packages_in
from tests.parser.parsing import document
from tests.parser.test_laws import NEARLY, as_yaml
from tests.parser.written import environments, packages

MEBIBYTE = 1024 * 1024

ODD_LINES = (
    *("---\n", "--- # a comment\n", "--- {kind: Label, metadata: {name: x}}\n", "...\n", "%YAML 1.1\n", "\n", "# c\n"),
    *(
        "---x\n",
        " ---\n",
        "--- &a\n",
        "  description: &d text\n",
        "  description: *d\n",
        "  <<: {color: red}\n",
        "\r\n",
    ),
    *(
        "  name: {envRef: {key: stage}}\n",
        "  description: |+\n",
        "  description: >\n\n",
        '  description: "a\n',
        "\ufeff",
    ),
    *("  unknown: 1\n", "  every: 1h\n", "kind: 5\n", "spec:\n", "  - kind: Label\n    name: none\n", "[\n", "\u2028"),
    "  query: option params = {a: 1}\n",
)
"""Lines that an edit inserts; most make a package that is invalid, odd, or split into other documents."""


def answer(
    texts: list[str], cache: DocumentCache | None, env: Mapping[str, Any] | None = None, bounds: Bounds | None = None
) -> str:
    """The full result of parsing *texts* as text, or the error."""
    sources = [Source(f"{number}.yml", text) for number, text in enumerate(texts)]
    try:
        parsed = parse(sources, env or {}, ParseOptions(keep_valid_parts=True), bounds, cache=cache)
    except PkgerError as error:
        return repr((error, error.metadata))
    assert parsed.package
    # The repr of a spec does not show its display name.
    return repr((parsed, [item.spec.display_name for item in parsed.package.objects]))


def packages_to_edit(folder: Path) -> list[str]:
    """The shorter packages in YAML of a corpus, and generated ones."""
    texts = [path.read_bytes().decode() for path in packages_in(folder) if path.suffix == ".yml"]
    short = [text for text in texts if len(text) < 20_000]
    return [*short, *(package_text(12, mix, seed) for mix in Mix for seed in range(3))]


def edited(text: str, chance: random.Random) -> str:
    """*text* after a random edit, sensible or not."""
    lines = text.splitlines(keepends=True) or ["\n"]
    at_line = chance.randrange(len(lines))
    match chance.randrange(7):
        case 0:
            del lines[at_line]
        case 1:
            lines.insert(at_line, lines[at_line])
        case 2:
            lines.insert(at_line, chance.choice(ODD_LINES))
        case 3:
            other = chance.randrange(len(lines))
            lines[at_line], lines[other] = lines[other], lines[at_line]
        case 4:
            line = lines[at_line]
            at = chance.randrange(len(line))
            lines[at_line] = (
                line[:at] + chance.choice("abz019-: {}[]&*!|>'\"#%\t\n\x00é") + line[at + chance.randrange(2) :]
            )
        case 5:
            documents = text.split("---\n")
            chance.shuffle(documents)
            return "---\n".join(documents)
        case _:
            documents = text.split("---\n")
            documents[chance.randrange(len(documents))] = chance.choice(documents)
            return "---\n".join(documents)
    return "".join(lines)


def check_edits(folder: Path, count: int, seed: int) -> None:
    """Compare the results with a cache to those without one, for packages that are edited repeatedly."""
    chance = random.Random(seed)
    packages = packages_to_edit(folder)
    # Small enough to be full at times, and to drop documents.
    cache = DocumentCache(256 * 1024)
    original = text = packages[0]
    for number in range(count):
        if number % 20 == 0:
            original = text = chance.choice(packages)
            assert answer([text], cache) == answer([text], None)
        env = {"stage": "live"} if number % 3 == 0 else {}
        # Most edits add to the ones before; the others start from the original text again.
        text = edited(text if chance.random() < 0.7 else original, chance)
        texts = [text] if number % 5 else [text, original]
        assert answer(texts, cache, env) == answer(texts, None, env), text
        assert cache.size <= 256 * 1024


@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.slow))
def test_a_cached_document_gives_the_result_of_a_new_one(folder: Path) -> None:
    check_edits(folder, 200, seed=1)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("folder", corpus_parameters())
def test_cached_documents_give_the_results_of_new_ones_after_10_000_edits(folder: Path, seed: int) -> None:
    check_edits(folder, 1000, seed)


@given(packages, environments, environments, st.randoms(use_true_random=False))
def test_documents_of_every_kind_come_to_the_same_again(
    documents: list[dict[str, Any]], env: dict[str, Any], other: dict[str, Any], chance: random.Random
) -> None:
    cache = DocumentCache(MEBIBYTE)
    texts = [as_yaml([each]) for each in documents]
    for values in (env, other, {}):
        text = "---\n".join(texts)
        assert answer([text], cache, values) == answer([text], None, values)
        chance.shuffle(texts)


@given(st.lists(NEARLY, min_size=2, max_size=4))
def test_texts_that_are_nearly_packages_come_to_the_same_again(texts: list[str]) -> None:
    cache = DocumentCache(MEBIBYTE)
    label = document("Label", name="red")
    for text in (label, *texts):
        for stream in (f"{label}---\n{text}", f"{text}\n---\n{label}", f"{label}{text}"):
            assert answer([stream], cache) == answer([stream], None)


@pytest.mark.parametrize("end", ["", "...\n"])
def test_a_document_that_depends_on_an_earlier_one_is_read_with_it(end: str) -> None:
    cache = DocumentCache(MEBIBYTE)
    label = document("Label", "color: *color", "red")
    for color in ("blue", "green"):
        text = f"{document('Bucket', f'description: &color {color}')}{end}---\n{label}"
        assert answer([text], cache) == answer([text], None)
    tagged, other = (document("Label", f"color: !x!binary {text}", "red") for text in ("aGVsbG8=", "d29ybGQ="))
    # Each of the earlier documents was read in another stream, too.
    for prefix, last in (("yaml.org,2002", tagged), ("example.com,2000", other), ("example.com,2000", tagged)):
        text = f"{document('Bucket')}{end}%TAG !x! tag:{prefix}:\n---\n{last}"
        assert answer([text], cache) == answer([text], None)


@given(packages, st.sampled_from(["value-of-env", "another"]))
def test_the_cache_holds_no_value_of_a_secret_or_of_the_environment(
    documents: list[dict[str, Any]], value: str
) -> None:
    cache = DocumentCache(MEBIBYTE)
    text = as_yaml(documents).replace("secretRef", "envRef")
    text += "---\n" + document("NotificationEndpointSlack", "url: http://x\ntoken: a-password", "slack")
    answer([text], cache, dict.fromkeys(("k", "stage", "other-key", "team", "pw"), value))
    held = repr(cache.entries())
    assert value not in held
    assert "a-password" not in held
    assert '"default"' not in held


def test_an_object_with_a_label_of_an_invalid_name_is_not_cached() -> None:
    cache = DocumentCache(MEBIBYTE)
    bucket = document("Bucket", "associations: [{kind: Label, name: Bad}]")
    for text in (f"{bucket}---\n{document('Label', name='Bad')}", bucket):
        assert answer([text], cache) == answer([text], None)


class _Reads:
    """The texts that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []

        def noted(source: str, text: str, *usage: Any) -> Stream:
            self.texts.append(text)
            return read_stream(source, text, *usage)

        monkeypatch.setattr("parser_svc.known_documents.read_stream", noted)


def test_an_edit_costs_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, cache, text = _Reads(monkeypatch), DocumentCache(MEBIBYTE), package_text(40)
    answer([text], cache)
    answer([text], cache)
    assert reads.texts == [text]
    documents = re.split(r"\n(?=---\n)", text)
    documents[25] = documents[25].replace("name: bucket", "name: pail")
    answer(["\n".join(documents)], cache)
    assert reads.texts[1:] == [documents[25] + "\n"]


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("name: {envRef: {key: k}}", "Label"),
        ("unknown: 1", "Label"),
        ("every: 1h\nquery: 'option params = {a: 1}'", "Task"),
        ("color: {a: 1}", "Label"),
        ("url: http://x", "NotificationEndpointSlack"),
        ("associations: [{kind: Label, name: {envRef: {key: k, default: red}}}]", "Bucket"),
        ("description: &a text", "Label"),
        ("retentionRules: [{type: expire, everySeconds: 1}]", "Bucket"),
    ],
)
def test_an_object_with_other_dependencies_or_remarks_is_not_cached(kind: str, spec: str) -> None:
    cache = DocumentCache(MEBIBYTE)
    answer([f"{document('Label', name='red')}---\n{document(kind, spec)}"], cache)
    assert [entry.key for entry in cache.entries()] == ([] if "&" in spec else [Key(LABEL, "red")])


def test_a_label_whose_name_a_value_may_change_is_read_again() -> None:
    cache = DocumentCache(MEBIBYTE)
    bucket = document("Bucket", "associations:\n  - kind: Label\n    name: red", "logs")
    by_value = document("Label").replace("name: thing", "name: {envRef: {key: k, default: red}}")
    answer([f"{document('Label', name='red')}---\n{bucket}"], cache)
    assert len(cache.entries()) == 2
    for text in (f"{by_value}---\n{bucket}", f"{document('Label', name='blue')}---\n{bucket}", bucket):
        assert answer([text], cache) == answer([text], None)
        assert answer([text], cache, {"k": "red"}) == answer([text], None, {"k": "red"})


def test_bounds_count_known_documents_as_new_ones() -> None:
    cache, text = DocumentCache(MEBIBYTE), package_text(20)
    answer([text], cache)
    for bounds in (Bounds(nodes=50), Bounds(objects=19), Bounds(depth=2), Bounds(bytes=100)):
        shown = answer([text], cache, bounds=bounds)
        assert shown == answer([text], None, bounds=bounds)
        assert "SourceTooLarge" in shown


def test_a_spec_that_was_looked_into_takes_no_room_in_the_cache() -> None:
    cache, text = DocumentCache(MEBIBYTE), package_text(5)
    for _ in range(2):
        package = parse([Source("a.yml", text)], {}, cache=cache).package
        assert package
        assert [item.spec.value["name"] for item in package.objects]
    assert all(isinstance(entry.spec, str) for entry in cache.entries())


@pytest.mark.slow
@pytest.mark.parametrize("mix", Mix)
def test_the_cache_takes_no_more_memory_than_it_says(mix: Mix) -> None:
    most = 512 * 1024
    # Before it is measured, all that parsing makes once for the process: compiled expressions and tables of kinds.
    answer([package_text(300, mix, 0)], DocumentCache(most))
    cache = DocumentCache(most)
    tracemalloc.start()
    try:
        for seed in range(4):
            answer([package_text(300, mix, seed)], cache)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most * 0.9 < cache.size <= most
    assert taken < 2 * most


def entry(name: str, length: int = 100) -> CachedObject:
    return CachedObject(Key(LABEL, name), "v", name, "x" * length, (), 1, 1, 1)


def test_the_least_recently_used_entry_is_dropped_first() -> None:
    cache = DocumentCache(3000)
    cache.keep([(b"a", entry("a")), (b"b", entry("b")), (b"c", entry("c"))])
    assert cache.find([b"a", b"d"]) == [entry("a"), None]
    cache.keep([(b"d", entry("d"))])
    assert cache.find([b"a", b"b", b"c", b"d"]) == [entry("a"), None, entry("c"), entry("d")]
    size = cache.size
    cache.keep([(b"d", entry("d"))])
    assert cache.size == size
    cache.keep([(b"e", entry("e", length=5000))])
    assert cache.find([b"e"]) == [None]
    assert cache.size == size


def test_the_room_of_the_cache_is_set_by_the_environment() -> None:
    assert load({"PKGER_DOCUMENT_CACHE": "4096"}).document_cache == 4096
    assert load({"PKGER_DOCUMENT_CACHE": "0"}).document_cache == 0
    assert load({"PKGER_DOCUMENT_CACHE": ""}).document_cache == 32 * MEBIBYTE
    with pytest.raises(SettingInvalid, match="write a whole number from 0 to"):
        load({"PKGER_DOCUMENT_CACHE": "32MiB"})
    empty = DocumentCache(0)
    answer([package_text(5)], empty)
    assert empty.size == 0
