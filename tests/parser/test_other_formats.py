"""For JSON of another format, the error names that format and the way to a package."""

import json
from typing import Any

import pytest

from parser_svc.package import parse
from parser_svc.sources import Encoding, Source
from services.core.errors import SourceUndecodable
from tests.parser.parsing import document, parse_text

EXPORT = {
    "meta": {"version": "1", "type": "dashboard", "name": "Load-Template", "description": "of Load"},
    "content": {"data": {"type": "dashboard", "attributes": {"name": "Load"}, "relationships": {}}, "included": []},
    "labels": [],
}
TASK = {"content": {"data": {"type": "task", "attributes": {"name": "Hourly"}}}}
GRAFANA = {"title": "Load", "panels": [], "schemaVersion": 39}
OLD_GRAFANA = {"title": "Load", "rows": [], "schemaVersion": 14}
GRAFANA_API = {"dashboard": {"title": "Load", "panels": []}, "overwrite": True}

CASES = [
    (EXPORT, "a dashboard as the user interface of InfluxDB exports it", "`pkger convert FILE`"),
    (TASK, "a task as the user interface of InfluxDB exports it", "`pkger convert FILE`"),
    (GRAFANA, "a dashboard of Grafana", "`pkger export`"),
    (OLD_GRAFANA, "a dashboard of Grafana", "`influx export`"),
    (GRAFANA_API, "a dashboard of Grafana", "`pkger export`"),
]


@pytest.mark.parametrize(("root", "what", "remedy"), CASES)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_object_in_place_of_an_array_is_named(root: Any, what: str, remedy: str, mark: str) -> None:
    with pytest.raises(SourceUndecodable) as caught:
        parse([Source("a.json", mark + json.dumps(root))], {})
    assert f"this is {what}" in caught.value.metadata["problem"]
    assert remedy in caught.value.metadata["problem"]


@pytest.mark.parametrize(("root", "what", "remedy"), CASES)
def test_an_element_or_a_document_is_named_and_nothing_else_is_said_of_it(root: Any, what: str, remedy: str) -> None:
    label = {"apiVersion": "influxdata.com/v2alpha1", "kind": "Label", "metadata": {"name": "fleet"}}
    texts = {Encoding.JSON: json.dumps([label, root]), Encoding.YAML: document("Label") + "---\n" + json.dumps(root)}
    for encoding, text in texts.items():
        parsed = parse_text(text, encoding=encoding)
        [violation] = parsed.violations
        assert (violation.code, violation.path) == ("other-format", "root[1].kind")
        assert violation.reason.startswith(f"this is {what}")
        assert remedy in violation.reason
        assert violation.location.line == (1 if encoding is Encoding.JSON else text.count("\n") + 1)
        assert parsed.warnings == ()


@pytest.mark.parametrize(
    "root",
    [
        {},
        {"content": {}},
        {"content": {"data": []}},
        {"content": {"data": {"type": ["task"]}}},
        {"dashboard": [1]},
        {"spec": {}},
    ],
)
def test_other_objects_lack_a_kind(root: Any) -> None:
    [violation] = parse_text(json.dumps([root]), encoding=Encoding.JSON).violations
    assert violation.code == "kind-missing"


def test_json_may_begin_with_a_byte_order_mark_as_yaml_may() -> None:
    text = '\ufeff[{"apiVersion": "influxdata.com/v2alpha1", "kind": "Label", "metadata": {"name": "Fleet"}}]'
    for encoding in (Encoding.JSON, None):
        [violation] = parse([Source("fleet", text, encoding)], {}).violations
        assert (violation.code, violation.location.column) == ("name-invalid", text.index('"Fleet"'))
