"""Laws of parsing over arbitrary specs: equal content is equal, whatever it is written in."""

import json
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from parser_svc.sources import Encoding
from tests.parser.parsing import parse_text

words = st.sampled_from(
    ["aa", "b b", "é", "5", "", " x ", "flux", "expire", "active", "time", "field", "float", "1h30m"]
)
numbers = st.integers(-5, 10_000) | st.sampled_from([3600.0, 3600.5, 1e9, 0.5])
values = st.recursive(
    words | numbers | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
durations = st.sampled_from(["1h", "90m", "1500ms", "1d1h", "-5m", "1us", "nonsense", ""]) | numbers


def mapping(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings with any of the fields, each usually of its type."""
    return st.fixed_dictionaries({}, optional={name: field | values for name, field in fields.items()})


names = mapping(name=words, description=words)
columns = mapping(name=words, type=st.sampled_from(["timestamp", "tag", "field"]), dataType=words)
SPECS = {
    "Label": mapping(color=words),
    "Bucket": mapping(
        retentionRules=st.lists(mapping(type=words, everySeconds=numbers), max_size=2),
        schemaType=words,
        measurementSchemas=st.lists(mapping(name=words, columns=st.lists(columns, max_size=3)), max_size=2),
    ),
    "Variable": mapping(
        type=st.sampled_from(["constant", "map", "query", "other", ""]),
        values=st.lists(words, min_size=1) | st.dictionaries(words, words, min_size=1),
        query=words,
        language=st.sampled_from(["flux", "InfluxQL"]),
        selected=st.lists(words, max_size=2),
    ),
    "Task": mapping(every=durations, offset=durations, cron=words, query=words, status=words),
    "Dashboard": mapping(charts=st.lists(st.dictionaries(words, values, max_size=3), max_size=3)),
}


@st.composite
def envelopes(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(sorted(SPECS)))
    spec = draw(names) | draw(SPECS[kind])
    return {"apiVersion": "influxdata.com/v2alpha1", "kind": kind, "metadata": {"name": "thing"}, "spec": spec}


def written_as_yaml(envelope: dict[str, Any]) -> str:
    return yaml.safe_dump(envelope, allow_unicode=True)


@given(envelopes())
def test_yaml_and_json_of_one_object_say_the_same(envelope: dict[str, Any]) -> None:
    from_yaml = parse_text(written_as_yaml(envelope))
    from_json = parse_text(json.dumps([envelope]), encoding=Encoding.JSON)
    assert from_yaml.package == from_json.package
    assert [(each.path, each.reason) for each in from_yaml.violations] == [
        (each.path, each.reason) for each in from_json.violations
    ]


@given(envelopes())
def test_a_normalised_spec_written_back_parses_to_itself(envelope: dict[str, Any]) -> None:
    package = parse_text(written_as_yaml(envelope)).package
    if package is None:
        return
    [item] = package.objects
    again = parse_text(written_as_yaml(envelope | {"spec": dict(item.spec.value)})).package
    assert again is not None
    assert again.objects == package.objects


@given(envelopes())
def test_every_violation_has_a_place(envelope: dict[str, Any]) -> None:
    for violation in parse_text(written_as_yaml(envelope)).violations:
        assert violation.location.line > 0
        assert violation.location.column > 0
