"""Bounds that an operator sets, for all sources of a package together."""

import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pkger.parser.v1 import parser_pb2

from parser_svc.servicer import SERVICE, register
from parser_svc.source_texts import Gatherer
from parser_svc.sources import Encoding, Source, read_sources
from services.core.errors import SourceTooLarge
from services.rpc.client import Peer
from services.rpc.process import Service
from services.settings import (
    MAX_ACTION_SETS,
    MAX_INDEX_BYTES,
    RESOLUTION_SECONDS,
    Bounds,
    SettingInvalid,
    bound_variable,
    load,
)
from services.syntax.json_reader import read_array
from services.syntax.usage import Usage
from services.syntax.yaml_reader import read_documents
from tests.conftest import ROOT
from tests.parser.conftest import Parser
from tests.transport import serving_at_socket

YAML = "a: [1, 2, {b: c}]\n---\na: &x [1, 2]\nb: [*x, *x]\n"
JSON = '[{"a": [1, 2, {"b": "c"}]}, {"a": [1, 2], "b": [[1, 2], [1, 2]]}]'
SOURCES = [Source("a.yml", YAML), Source("b.json", JSON)]

EXACT = {"bytes": len(YAML) + len(JSON), "objects": 4, "depth": 4, "nodes": 34}
"""The usage of ``SOURCES``: in each of them 6 values in the first object, 11 in the second."""


@pytest.mark.parametrize("bound", EXACT)
def test_sources_may_ask_for_as_much_as_the_bound_says_and_no_more(bound: str) -> None:
    assert len(read_sources(SOURCES, Bounds(**{bound: EXACT[bound]}))) == 4
    with pytest.raises(SourceTooLarge) as caught:
        read_sources(SOURCES, Bounds(**{bound: EXACT[bound] - 1}))
    assert caught.value.metadata["limit"] == str(EXACT[bound] - 1)
    assert caught.value.metadata["source"] == "b.json"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [(Encoding.YAML, "---\n" * 100_000 + "a: ]"), (Encoding.JSON, "[" + "{}, " * 100_000 + "]]")],
    ids=["documents without content", "elements"],
)
def test_reading_stops_at_the_bound_of_objects(encoding: Encoding, text: str) -> None:
    """Whatever follows takes neither time nor memory, so its errors are not reported."""
    with pytest.raises(SourceTooLarge, match="limit for objects in all sources together of 50,000"):
        read_sources([Source("a", text, encoding)])


def test_documents_without_content_count_as_objects() -> None:
    sources = [Source("a.yml", "---\n" * 3), Source("b.yml", "---\n" * 2)]
    assert read_sources(sources, Bounds(objects=5)) == []
    with pytest.raises(SourceTooLarge, match=r"b\.yml: .*objects in all sources together of 4"):
        read_sources(sources, Bounds(objects=4))


keys = st.sampled_from(["a", "b", "c", "d"])
trees = st.recursive(
    st.none() | keys, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner), max_leaves=10
)


@given(st.lists(st.dictionaries(keys, trees), min_size=1, max_size=3))
def test_yaml_and_json_count_values_alike(documents: list[dict[str, Any]]) -> None:
    yaml = "".join(f"--- {json.dumps(document)}\n" for document in documents)
    count = sum(map(_values, documents))
    read_documents("a", yaml, Usage(Bounds(nodes=count)))
    read_array("a", json.dumps(documents), Usage(Bounds(nodes=count)))
    with pytest.raises(SourceTooLarge):
        read_documents("a", yaml, Usage(Bounds(nodes=count - 1)))
    with pytest.raises(SourceTooLarge):
        read_array("a", json.dumps(documents), Usage(Bounds(nodes=count - 1)))


def _values(tree: Any) -> int:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return 1 + sum(map(_values, inner))


@pytest.mark.parametrize(
    ("encoding", "text"), [(Encoding.YAML, "a: [" + "b, " * 5000 + "]"), (Encoding.JSON, '[{"a": 1}]')]
)
def test_reading_ends_when_the_time_is_over(encoding: Encoding, text: str) -> None:
    ticks = iter([100.0, 130.5])
    with pytest.raises(SourceTooLarge, match="seconds of reading of 30"):
        read_sources([Source("a", text, encoding)], Bounds(), clock=lambda: next(ticks))


def test_usage_has_the_remaining_seconds_and_bytes() -> None:
    now = 0.0
    usage = Usage(Bounds(bytes=10, seconds=5), lambda: now)
    usage.take_bytes("a", 4)
    now = 3.0
    assert (usage.bytes_left, usage.seconds_left) == (6, 2.0)
    now = 7.0
    assert usage.seconds_left == 0


def test_every_bound_is_read_from_the_environment() -> None:
    names = [field.name for field in fields(Bounds)]
    environ = {bound_variable(name): str(number) for number, name in enumerate(names, 1)}
    assert load(environ).bounds == Bounds(*range(1, len(names) + 1))
    assert load({}).bounds == load(dict.fromkeys(environ, "")).bounds == Bounds()


@pytest.mark.parametrize("value", ["0", "-1", "1e6", " 5", "8MiB", "٣", "1" * 17, "²"])
def test_a_bound_that_is_no_whole_number_in_its_range_is_refused(value: str) -> None:
    with pytest.raises(SettingInvalid, match=r"^Error: PKGER_MAX_BYTES=.*: write a whole number from 1 to"):
        load({"PKGER_MAX_BYTES": value})


def test_a_service_with_a_setting_that_it_cannot_have_ends_with_a_line_that_says_so() -> None:
    environ = os.environ | {"PKGER_MAX_BYTES": "8M"}
    ended = subprocess.run(
        [sys.executable, "-m", "parser_svc"], env=environ, capture_output=True, text=True, check=False
    )
    expected = "Error: PKGER_MAX_BYTES=8M: write a whole number from 1 to 1,000,000,000,000,000\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", expected)


def test_the_bound_on_depth_ends_where_writers_of_json_do() -> None:
    assert load({"PKGER_MAX_DEPTH": "200"}).bounds.depth == 200
    with pytest.raises(SettingInvalid, match="from 1 to 200"):
        load({"PKGER_MAX_DEPTH": "201"})


@pytest.mark.parametrize("variable", ["PKGER_ALLOW_JSONNET", "PKGER_ALLOW_PRIVATE_ADDRESSES"])
def test_a_switch_is_off_until_it_is_set_to_1(variable: str) -> None:
    def switches(environ: dict[str, str]) -> tuple[bool, bool]:
        settings = load(environ)
        return settings.allow_jsonnet, settings.allow_private_addresses

    assert switches({}) == switches({variable: "0"}) == switches({variable: ""}) == (False, False)
    assert switches({variable: "1"}) == ("JSONNET" in variable, "PRIVATE" in variable)
    with pytest.raises(SettingInvalid, match="write 1 to allow it, 0 not to"):
        load({variable: "yes"})


def test_the_table_of_settings_has_the_default_bounds() -> None:
    expected = dict(
        re.findall(r"^\| `(PKGER_MAX_\w+)` \| `(\d+)` \|", (ROOT / "docs" / "deploy.md").read_text(), re.MULTILINE)
    )
    of_packages = {bound_variable(field.name): str(field.default) for field in fields(Bounds)}
    of_repositories = {
        "PKGER_MAX_INDEX_BYTES": str(MAX_INDEX_BYTES),
        "PKGER_MAX_RESOLUTION_SECONDS": str(RESOLUTION_SECONDS),
    }
    of_appliers = {"PKGER_MAX_ACTION_SETS": str(MAX_ACTION_SETS)}
    assert expected == of_packages | of_repositories | of_appliers


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PKGER_STACK_ADDRESS", "https://127.0.0.1:1"),
        ("PKGER_STACK_ADDRESS", "127.0.0.1"),
        ("PKGER_STACK_ADDRESS", "unix:stack.sock"),
        ("PKGER_STACK_ADDRESS", "127.0.0.1:99999"),
        ("PKGER_STACK_ADDRESS", "unix:/" + "p" * 107),
        ("PKGER_HTTP_ADDRESS", "foo"),
        ("PKGER_SERVER", "http://far"),
        ("PKGER_SERVER", "far:50051"),
    ],
)
def test_an_address_of_another_form_is_refused_with_its_variable(variable: str, value: str) -> None:
    with pytest.raises(SettingInvalid, match=f"Error: {variable}={value}: write "):
        load({variable: value})


async def test_a_service_looks_at_the_clock_while_it_reads() -> None:
    """The time was over before it began."""
    gatherer = Gatherer(Bounds(seconds=-1))
    async with serving_at_socket(Service([register(gatherer)], [SERVICE])) as address, Peer("parser", address) as peer:
        with pytest.raises(SourceTooLarge, match="seconds of reading"):
            await Parser(peer).parse(parser_pb2.Source(text="[]"))
