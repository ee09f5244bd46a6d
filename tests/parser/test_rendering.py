"""Packages rendered as text."""

import pytest

from parser_svc.render import render
from parser_svc.sources import Encoding
from services.core.errors import RequestInvalid
from services.core.model import Key, Object, Package, WrittenValue
from services.kinds.format.canonical import spec_of
from tests.parser.parsing import document, parse_text

TEAM = "{envRef: {key: team, default: red}}"
TASK = f"every: 90m\nquery: |\n  a\n  b\nassociations: [{{kind: Label, name: {TEAM}}}]"
TEXT = document("Label", "name: Red\ncolor: '#f00'", TEAM) + "---\n" + document("Task", TASK, "nightly")


def parsed(text: str) -> Package:
    package = parse_text(text).package
    assert package is not None
    return package


def test_yaml_has_one_document_for_each_object() -> None:
    assert (
        render(parsed(TEXT), Encoding.YAML)
        == """\
apiVersion: influxdata.com/v2alpha1
kind: Label
metadata:
  name:
    envRef:
      default: red
      key: team
spec:
  color: '#f00'
  description: ""
  name: Red
---
apiVersion: influxdata.com/v2alpha1
kind: Task
metadata:
  name: nightly
spec:
  associations:
  - kind: Label
    name: red
  cron: ""
  description: ""
  every: 1h30m0s
  offset: ""
  query: |-
    a
    b
  status: active
"""
    )


def test_json_is_one_array_indented_with_tabs() -> None:
    assert render(parsed(document("Label", "color: é")), Encoding.JSON) == (
        '[\n\t{\n\t\t"apiVersion": "influxdata.com/v2alpha1",\n\t\t"kind": "Label",\n\t\t"metadata": {\n'
        '\t\t\t"name": "thing"\n\t\t},\n\t\t"spec": {\n\t\t\t"color": "é",\n\t\t\t"description": ""\n\t\t}\n\t}\n]\n'
    )


def test_a_package_without_objects_has_no_documents() -> None:
    assert render(Package(()), Encoding.YAML) == ""
    assert render(Package(()), Encoding.JSON) == "[]\n"


def test_a_name_that_comes_from_the_meta_name_stays_so() -> None:
    text = render(parsed(document("Bucket", "", "{envRef: {key: k, default: b0}}")), Encoding.YAML)
    package = parse_text(text, {"k": "other"}).package
    assert package is not None
    assert package.objects[0].spec.display_name == "other"


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (Object(Key("Rocket", "a"), "v", spec_of({"name": "a"})), "package.objects[0].key.kind"),
        (
            Object(Key("Label", "a"), "v", spec_of({"name": "a"}), written=(WrittenValue("/spec/x/y", "1"),)),
            "package.objects[0].written",
        ),
    ],
)
def test_an_invalid_package_cannot_be_written(item: Object, field: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        render(Package((item,)), Encoding.YAML)
    assert raised.value.metadata["field"] == field
