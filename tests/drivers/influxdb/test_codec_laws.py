"""The laws of the codecs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from parser_svc.package import parse
from parser_svc.sources import Encoding, Source
from services.core.model import Reference
from services.drivers.influxdb.codecs.codec import Refused
from services.drivers.influxdb.codecs.endpoint import TYPES
from services.drivers.influxdb.codecs.normal import normalised
from services.drivers.influxdb.codecs.registry import CODECS, kind_of
from services.drivers.influxdb.codecs.task_script import query_in, written
from services.kinds.format.canonical import canonical_text
from services.kinds.registry import KINDS
from tests.apply.packages import an_object
from tests.corpora import REFUSED_BY_INFLUXDB, corpus_parameters, package_text, packages_in
from tests.drivers.influxdb.server_model import held
from tests.parser.parsing import parse_text
from tests.parser.written import specs

SECRET = {"secretRef": {"key": "a key"}}

QUERIES = st.sampled_from(
    [
        'from(bucket: "b")\n  |> range(start: -1h)\n  |> filter(fn: (r) => r._field == "usage")',
        'from(bucket: "b") |> filter(fn: (r) => r["_field"] == "x${y}") |> yield(name: "option task = {}")',
        "// option task = {name: 1}\nfrom(bucket: v.bucket)",
        'import "x" // import "z"\nimport "y"\n\n// what it does\nx()',
        'package main\nimport "x"\noption params = {a: 1}\n\nx()',
        'option task = {name: "own", every: 1h, concurrency: 2} // why\nx()',
        'x()\noption task = {cron: "* * * * *"}',
        'option task = {name: "n", every: 1m} // pkger:option "option task = {}"\nx()',
        'import "x"',
        '@edition("2022.1")\npackage main\nimport "x"\n\n@why(for: 1)\ny = 1',
        'r = /option task = \\{/\r\noption v = {a: "\\"${r}"}\n\tx()',
    ]
)

NAMES = st.sampled_from(["plain", 'a "quoted" name', "two\nlines\t\r", "$", '$"', "a\\b", "${x}", "ü ☂", " ends "])


@st.composite
def normal_specs(draw: st.DrawFn, kind: str) -> Mapping[str, Any]:
    """Normalised specs of a kind, as the parser makes them."""
    spec = draw(specs(kind)) | {"name": draw(NAMES | st.just("name"))}
    if "query" in spec and kind != "Variable":
        spec["query"] = draw(QUERIES)
    spec |= {key: SECRET for key in ("token", "username", "password", "routingKey") if key in spec}
    objects = [an_object(kind, "it", "it") | {"spec": spec}]
    if kind == "NotificationRule":
        objects.append(
            an_object("NotificationEndpointSlack", "hook", "hook")
            | {"spec": {"name": "hook", "url": "http://x", "token": SECRET}}
        )
        spec["endpointName"] = "hook"
    package = parse_text(json.dumps(objects), {}, Encoding.JSON).package
    assume(package is not None)
    assert package
    return next(item.spec.value for item in package.objects if item.key.kind == kind)


def references(kind: str, endpoint: str = "NotificationEndpointSlack") -> list[Reference]:
    return [Reference("/endpointName", endpoint, "0" * 15 + "1")] if kind == "NotificationRule" else []


UNCHANGED = KINDS.keys() - {"NotificationRule", "Bucket", "Variable", "Label"}
"""Kinds of which a server changes no spec of the parser."""


def check_laws(kind: str, data: st.DataObject) -> None:
    """
    A prepared spec is prepared to itself, and is read as it was written.

    Otherwise every plan would contain unwanted changes. A duration in the script of a task keeps its units
    (docs/reference/package-format.md, "Parameter values") until it is read from there.
    """
    spec = data.draw(normal_specs(kind))
    refers = references(kind, data.draw(st.sampled_from(sorted(TYPES))))
    codec = CODECS[kind]
    try:
        prepared = codec.prepare(spec, refers)
    except Refused as refused:
        event(f"refused: {str(refused)[:40]}")
        return
    event("held")
    assert codec.prepare(prepared, refers) == prepared
    normal = normalised(kind, spec)
    if kind in UNCHANGED:
        assert canonical_text(codec.prepare(normal, refers)) == canonical_text(dict(normal))
    body = codec.write(prepared, refers, None)
    answer = held(kind, body)
    assert canonical_text(codec.read(answer)) == canonical_text(prepared)
    assert kind_of(codec.collection, answer) == kind
    # The same holds when it is written again.
    again = held(kind, codec.write(prepared, refers, answer))
    assert canonical_text(codec.read(again)) == canonical_text(prepared)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_written_spec_is_read_as_it_was_prepared(kind: str, data: st.DataObject) -> None:
    check_laws(kind, data)


@given(QUERIES | st.text(st.sampled_from('ox(){}=" \n\r/\\$:"') | st.characters(codec="utf-8")), NAMES)
def test_a_query_is_read_unchanged_from_its_script(query: str, name: str) -> None:
    spec = {"name": name, "query": query, "cron": "", "every": "1h0m0s", "offset": "", "status": "active"}
    try:
        prepared = CODECS["Task"].prepare(spec, [])
    except Refused:
        return
    assert query_in(written(prepared)).rstrip("\n") == prepared["query"].rstrip("\n")


HEADS = st.lists(st.sampled_from(["package main", 'import "a"', 'import b "c/d" // import "z"', "// head"]), max_size=3)
STATEMENTS = st.lists(
    st.sampled_from(
        [
            'from(bucket: "b") |> range(start: -1h)',
            'option params = {a: 1, b: "x", c: -1d}',
            'option location = {zone: "x"}',
            "option v.x = 3",
            'option task = {name: "own", every: 1h, concurrency: 2}',
            'option\ntask\n=\n{name: "n", every: 1h}',
            'task = {name: "no option"}',
            '"option task = {name: 2}"',
            'y = (r) => ({r with a: "option task = {}"})',
            "z = /option task = \\{/",
            's = "a \\"${x}\\" \\\\"',
            'n = "multi\nline"',
            "f = () => {\n  option = 1\n  return option\n}",
            "if a then b else c",
            "@attribute(a: 1)\nw = 1",
            "builtin q : (?a: int) => int",
        ]
    ),
    min_size=1,
    max_size=4,
    unique=True,
)
LINE_ENDS = st.sampled_from(["\n", "\n\n", "\r\n", "\n// between\n", "\n  \n", " // behind\n"])


@given(HEADS, STATEMENTS, st.data(), NAMES)
def test_no_valid_flux_script_is_refused_or_changed(
    heads: list[str], statements: list[str], data: st.DataObject, name: str
) -> None:
    """With any comments, imports and options; with parameters, as the parser formats it."""
    query = "".join(f"{line}{data.draw(LINE_ENDS)}" for line in (*heads, *statements))
    spec = normalised("Task", {"name": name, "query": query, "every": "1h"})
    prepared = CODECS["Task"].prepare(spec, [])
    assert prepared == spec
    answer = held("Task", CODECS["Task"].write(prepared, [], None))
    assert CODECS["Task"].read(answer) == prepared


@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.slow))
def test_no_object_of_the_packages_is_refused_or_changed(folder: Path) -> None:
    """The recorded ones were written to a real server and read back unchanged."""
    changed, count = [], 0
    for path in packages_in(folder):
        if path == REFUSED_BY_INFLUXDB:
            continue
        package = parse([Source(path.stem, package_text(path))], {}).package
        objects = package.objects if package else ()
        for item in objects:
            count += 1
            codec = CODECS[item.key.kind]
            ends = {each.key.name: each.key.kind for each in objects if each.key.kind in TYPES}
            refers = references(item.key.kind, ends.get(item.spec.value.get("endpointName", ""), ""))
            try:
                prepared = codec.prepare(item.spec.value, refers)
            except Refused as refused:
                changed.append(f"{path.name} {item.key}: {refused}")
                continue
            read = codec.read(held(item.key.kind, codec.write(prepared, refers, None)))
            if canonical_text(read) != canonical_text(prepared):
                changed.append(f"{path.name} {item.key} is read otherwise")
            if canonical_text(prepared) != item.spec.text and item.key.kind not in {"NotificationRule", "Bucket"}:
                changed.append(f"{path.name} {item.key} is prepared otherwise")
    assert not changed
    assert count > 30
