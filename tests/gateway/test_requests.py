"""Reads bodies of requests: errors name the member, and checks are in the order of InfluxDB."""

import json
from typing import Any

import pytest
from multidict import MultiDict

from services.gateway.answers import Code
from services.gateway.errors import Problem
from services.gateway.requests.apply import Apply, read_apply
from services.gateway.requests.export import Export, NamedResource, WholeOrg, read_export
from services.gateway.requests.stacks import Addition, Listing, Update, read_creation, read_listing, read_update
from services.gateway.requests.templates import Encoding, Template

ORG = "00000000000000a1"
OTHER = "00000000000000b2"
LABEL = {"apiVersion": "influxdata.com/v2alpha1", "kind": "Label", "metadata": {"name": "a"}, "spec": None}
EMPTY = {"apiVersion": "", "kind": "", "metadata": {"name": ""}, "spec": None}


def apply_of(media_type: str = "application/json", **members: Any) -> Apply:
    return read_apply(json.dumps({"orgID": ORG, **members}).encode(), media_type)


@pytest.mark.parametrize("body", [b"", b"  \n", b"{x", b'{"a": 1', b"{} {}", b'{"a": NaN}', b'{"a": Infinity}'])
@pytest.mark.parametrize("read", [lambda body: read_apply(body, ""), read_export, read_creation, read_update])
def test_a_body_that_is_not_json_is_invalid(read: Any, body: bytes) -> None:
    with pytest.raises(Problem) as caught:
        read(body)
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize(
    "body", [b"null", b"[]", b'"text"', b"7", b"\xff{}", b'{"a": "\xff"}', b'{"a": "\\ud800"}', b"[" * 10_000]
)
@pytest.mark.parametrize("read", [lambda body: read_apply(body, ""), read_export, read_creation, read_update])
def test_a_body_that_is_not_an_object_is_invalid(read: Any, body: bytes) -> None:
    with pytest.raises(Problem) as caught:
        read(body)
    assert caught.value.code is Code.INVALID


@pytest.mark.parametrize(
    ("members", "code", "message"),
    [
        ({"orgID": None}, Code.INVALID, "orgID: "),
        ({"orgID": 7}, Code.INVALID, "orgID: write a text"),
        ({"orgID": "zz"}, Code.INVALID, "orgID: 'zz' is no id"),
        ({"orgID": "0" * 16}, Code.INVALID, "orgID: "),
        ({"orgID": "1" * 15}, Code.INVALID, "orgID: "),
        ({"orgID": "1" * 17}, Code.INVALID, "orgID: "),
        ({"stackID": ""}, Code.INVALID, "stackID: "),
        ({"stackID": 7}, Code.INVALID, "stackID: write a text"),
        ({"dryRun": "yes"}, Code.INVALID, "dryRun: write true or false, not a text"),
        ({"dryRun": 1}, Code.INVALID, "dryRun: "),
        ({"secrets": {"a": 1}}, Code.INVALID, "secrets.a: write a text"),
        ({"secrets": []}, Code.INVALID, "secrets: write an object, not a list"),
        ({"envRefs": "x"}, Code.INVALID, "envRefs: "),
        ({"allowEmpty": "x"}, Code.INVALID, "allowEmpty: "),
        ({"planDigest": 1}, Code.INVALID, "planDigest: "),
        ({"templates": {}}, Code.INVALID, "templates: write a list, not an object"),
        ({"templates": [7]}, Code.INVALID, "templates[0]: write an object, not a number"),
        ({"templates": [{"sources": [7]}]}, Code.INVALID, "templates[0].sources[0]: "),
        ({"templates": [{"contentType": 7}]}, Code.INVALID, "templates[0].contentType: "),
        ({"templates": [{"contents": 7}]}, Code.UNPROCESSABLE_ENTITY, "templates[0].contents"),
        ({"template": []}, Code.INVALID, "template: "),
        ({"remotes": [{"url": 7}]}, Code.INVALID, "remotes[0].url: "),
        ({"remotes": [{"url": "http://x/%zz"}]}, Code.INVALID, "remotes[0].url: "),
        ({"actions": {}}, Code.INVALID, "actions: "),
        ({"actions": [{"action": "x"}]}, Code.INVALID, "actions[0].action: "),
        ({"actions": [{"action": "skipKind"}]}, Code.INVALID, "actions[0].properties.kind: name a kind"),
        ({"actions": [{"action": "skipKind", "properties": 7}]}, Code.INVALID, "actions[0].properties: "),
        (
            {"actions": [{"action": "skipKind", "properties": {"kind": "Wat"}}]},
            Code.INVALID,
            "actions[0].properties.kind",
        ),
        (
            {"actions": [{"action": "skipResource", "properties": {"kind": "Label"}}]},
            Code.INVALID,
            "actions[0].properties.resourceTemplateName: ",
        ),
        # Ids are checked before contents of templates, and templates before actions.
        ({"orgID": "zz", "stackID": "zz"}, Code.INVALID, "orgID: "),
        ({"stackID": "zz", "templates": [{"contents": 7}]}, Code.INVALID, "stackID: "),
        ({"templates": [{"contents": 7}], "actions": [{"action": "x"}]}, Code.UNPROCESSABLE_ENTITY, "templates[0]"),
    ],
)
def test_the_error_of_an_invalid_apply_names_the_member(members: dict[str, Any], code: Code, message: str) -> None:
    with pytest.raises(Problem) as caught:
        apply_of(**members)
    assert (caught.value.code, caught.value.message[: len(message)]) == (code, message)


def test_the_value_of_a_secret_is_in_no_error_and_not_shown() -> None:
    with pytest.raises(Problem) as caught:
        apply_of(secrets={"key": ["the-value"]})
    assert "the-value" not in caught.value.message
    assert "the-value" not in repr(apply_of(secrets={"key": "the-value"}))


def test_null_is_the_same_as_absent() -> None:
    names = ("dryRun", "stackID", "templates", "template", "remotes", "envRefs", "secrets", "actions")
    assert read_apply(json.dumps({"orgID": ORG, **dict.fromkeys(names)}).encode(), "") == Apply(False, ORG)


def test_ids_may_be_in_upper_case() -> None:
    made = apply_of(orgID="00000000000000A1", stackID="00000000000000B2")
    assert (made.org_id, made.stack_id) == (ORG, OTHER)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ({"contents": None, "sources": ["byte stream.generated.json"], "contentType": "json"}, []),
        ({"contents": [], "sources": ["x"]}, []),
        ({}, []),
        ({"contents": [EMPTY]}, []),
        ({"contents": [LABEL]}, [Template.of_objects("byte stream", Encoding.JSON, [LABEL])]),
        (
            {"contents": [LABEL, EMPTY, None], "sources": ["a", "b"]},
            [Template.of_objects("a; b", Encoding.JSON, [LABEL])],
        ),
        ({"contents": LABEL, "contentType": "yaml"}, [Template.of_objects("byte stream", Encoding.JSON, [LABEL])]),
        ({"contents": [LABEL], "contentType": "yaml"}, [Template.of_objects("byte stream", Encoding.JSON, [LABEL])]),
        ({"contents": "kind: Label", "sources": ["x.yml"]}, [Template("x.yml", Encoding.YAML, text="kind: Label")]),
        ({"contents": "[]", "sources": ["x"]}, [Template("x", Encoding.UNKNOWN, text="[]")]),
        ({"contents": [], "contentType": "jsonnet"}, [Template.of_objects("byte stream", Encoding.JSONNET, [])]),
        ({"contents": "[]", "sources": ["x%2Ejsonnet"]}, [Template("x%2Ejsonnet", Encoding.JSONNET, text="[]")]),
    ],
)
def test_templates_become_sources(template: dict[str, Any], expected: list[Template]) -> None:
    assert apply_of(templates=[template]).templates == tuple(expected)
    assert apply_of(template=template).templates == tuple(expected)


def test_remotes_come_first_and_the_single_template_last() -> None:
    made = apply_of(
        template={"contents": [LABEL], "sources": ["last"]},
        templates=[{"contents": [LABEL], "sources": ["middle"]}],
        remotes=[{"url": ""}, {"url": "http://x/a.yml", "contentType": "application/x-yaml"}],
    )
    assert [(each.url, each.name) for each in made.templates] == [("http://x/a.yml", ""), ("", "middle"), ("", "last")]
    assert made.templates[0].encoding is Encoding.YAML


def test_values_nested_too_deeply_are_refused() -> None:
    deep = json.loads("[" * 500 + "]" * 500)
    with pytest.raises(Problem) as caught:
        apply_of(template={"contents": [{"spec": deep}]})
    assert caught.value.code is Code.UNPROCESSABLE_ENTITY
    with pytest.raises(Problem, match=r"envRefs\.key"):
        apply_of(envRefs={"key": deep})


def test_skips_are_kinds_or_objects() -> None:
    made = apply_of(
        actions=[
            {"action": "skipKind", "properties": {"kind": "Check"}},
            {"action": "skipResource", "properties": {"kind": "Label", "resourceTemplateName": "a"}},
        ]
    )
    assert [(each.kind, each.name) for each in made.options.skip] == [("Check", ""), ("Label", "a")]


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1e+08", 100000000.0),
        ("12:30:00", "12:30:00"),
        ("2026-01-02", "2026-01-02"),
        ("on", "on"),
        ("<<", "<<"),
        ("~", None),
        ("0x1F", 31),
        ("18446744073709551615", 18446744073709551615),
        ("'1'", "1"),
        ("true", True),
    ],
)
def test_scalars_of_a_yaml_body_are_read_as_in_packages(scalar: str, value: Any) -> None:
    body = f"orgID: {ORG}\ntemplate:\n  contents:\n  - kind: Label\n    spec: {scalar}\n"
    [template] = read_apply(body.encode(), "text/yml").templates
    assert json.loads(template.text) == [{"kind": "Label", "spec": value}]


@pytest.mark.parametrize("media_type", ["text/yml", "application/x-yaml", "application/yaml"])
def test_a_body_of_yaml_has_the_members_of_json(media_type: str) -> None:
    item = "  - {kind: Label, metadata: {name: on}, spec: 2020-01-01}\n"
    text = f"dryRun: true\norgID: '{ORG}'\ntemplate:\n  contents:\n{item}"
    made = read_apply(text.encode(), media_type)
    assert made.is_dry
    assert json.loads(made.templates[0].text) == [{"kind": "Label", "metadata": {"name": "on"}, "spec": "2020-01-01"}]
    assert read_apply(json.dumps({"orgID": ORG}, indent="\t").encode(), media_type) == Apply(False, ORG)


@pytest.mark.parametrize(
    "text", ["a: &a [1]\nb: *a", "- 1", "1: 2", "a: !!binary aGk=", "a: [", "\xff", "[" * 1000, "a: b\n---\nc: d"]
)
def test_yaml_that_json_cannot_express_is_refused(text: str) -> None:
    with pytest.raises(Problem) as caught:
        read_apply(text.encode("latin-1"), "text/yml")
    assert caught.value.code is Code.INVALID


def test_a_body_of_jsonnet_is_refused() -> None:
    with pytest.raises(Problem) as caught:
        apply_of("application/x-jsonnet")
    assert caught.value.code is Code.UNPROCESSABLE_ENTITY


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"stackID": OTHER, "resources": None}, Export(stack_id=OTHER)),
        ({"orgIDs": [{"orgID": ORG}]}, Export(orgs=(WholeOrg(ORG),))),
        (
            {"orgIDs": [{"orgID": ORG, "resourceFilters": {"byLabel": ["a"], "byResourceKind": ["Check"]}}]},
            Export(orgs=(WholeOrg(ORG, ("Check",), ("a",)),)),
        ),
        ({"resources": [{"kind": "Bucket", "id": OTHER}]}, Export(resources=(NamedResource("Bucket", OTHER),))),
        ({"resources": [{"kind": "Bucket", "name": "b"}]}, Export(resources=(NamedResource("Bucket", name="b"),))),
        (
            {"resources": [{"kind": "Bucket", "id": OTHER, "name": "new"}]},
            Export(resources=(NamedResource("Bucket", OTHER, new_name="new"),)),
        ),
        # The command line sends each argument twice.
        (
            {"resources": [{"kind": "Bucket", "id": "b"}, {"kind": "Bucket", "name": "b"}]},
            Export(resources=(NamedResource("Bucket", name="b"),)),
        ),
        (
            {"resources": [{"kind": "Bucket", "name": OTHER}, {"kind": "Bucket", "id": OTHER}]},
            Export(resources=(NamedResource("Bucket", OTHER, OTHER),)),
        ),
        (
            {"resources": [{"kind": "Bucket", "name": "b"}, {"kind": "Bucket", "name": "b"}]},
            Export(resources=(NamedResource("Bucket", name="b"),)),
        ),
    ],
)
def test_exports_are_read(body: dict[str, Any], expected: Export) -> None:
    assert read_export(json.dumps(body).encode()) == expected


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({}, Code.UNPROCESSABLE_ENTITY, "nothing to export"),
        ({"resources": []}, Code.UNPROCESSABLE_ENTITY, "nothing to export"),
        ({"stackID": "zz"}, Code.INVALID, "stackID: "),
        ({"orgIDs": [{}]}, Code.INVALID, "orgIDs[0].orgID: "),
        ({"orgIDs": ["x"]}, Code.INVALID, "orgIDs[0]: "),
        ({"resources": [{"kind": "Bucket", "id": "0" * 16}]}, Code.INVALID, "resources[0].id: "),
        ({"resources": [{"kind": "Bucket", "id": ""}]}, Code.INVALID, "resources[0].id: "),
        ({"resources": [{"kind": "Bucket", "id": 7}]}, Code.INVALID, "resources[0].id: "),
        (
            {"resources": [{"kind": "Label", "name": "b"}, {"kind": "Bucket", "id": "x" * 1001}]},
            Code.INVALID,
            "resources[1].id: ",
        ),
        ({"resources": [{"kind": "Bucket"}]}, Code.UNPROCESSABLE_ENTITY, "resources[0].id: "),
        ({"resources": [{"kind": "Wat", "name": "b"}]}, Code.UNPROCESSABLE_ENTITY, "resources[0].kind: 'Wat'"),
        (
            {"orgIDs": [{"orgID": ORG, "resourceFilters": {"byResourceKind": ["Wat"]}}]},
            Code.UNPROCESSABLE_ENTITY,
            "orgIDs[0].resourceFilters.byResourceKind[0]: 'Wat'",
        ),
    ],
)
def test_the_error_of_an_invalid_export_names_the_member(body: dict[str, Any], code: Code, message: str) -> None:
    with pytest.raises(Problem) as caught:
        read_export(json.dumps(body).encode())
    assert (caught.value.code, caught.value.message[: len(message)]) == (code, message)


def test_listings_are_read() -> None:
    query = MultiDict([("orgID", ORG), ("name", "a"), ("name", "b"), ("stackID", OTHER), ("stackID", OTHER.upper())])
    assert read_listing(query) == Listing(ORG, (OTHER,), ("a", "b"))
    for wrong in ({}, {"orgID": ""}, {"orgID": "zz"}, {"orgID": ORG, "stackID": "zz"}):
        with pytest.raises(Problem) as caught:
            read_listing(MultiDict(wrong))
        assert caught.value.code is Code.INVALID


def test_an_update_leaves_absent_members_unchanged() -> None:
    assert read_update(b'{"additionalResources": [], "templateURLs": null}') == Update()
    update = read_update(
        json.dumps(
            {
                "name": "",
                "templateURLs": [],
                "urls": ["http://x/b.yml"],
                "additionalResources": [{"kind": "Check", "resourceID": OTHER, "templateMetaName": "c"}],
            }
        ).encode()
    )
    assert update == Update("", None, (), ("http://x/b.yml",), (Addition("Check", OTHER, "c"),))


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"name": 7}, Code.INVALID, "name: "),
        ({"templateURLs": "x"}, Code.INVALID, "templateURLs: "),
        ({"templateURLs": ["http://x/%zz"]}, Code.INVALID, "templateURLs[0]: "),
        ({"additionalResources": [{"kind": "Bucket"}]}, Code.INVALID, "additionalResources[0].resourceID: "),
        (
            {"additionalResources": [{"kind": "Wat", "resourceID": OTHER}]},
            Code.UNPROCESSABLE_ENTITY,
            "additionalResources[0].kind: 'Wat'",
        ),
    ],
)
def test_the_error_of_an_invalid_update_names_the_member(body: dict[str, Any], code: Code, message: str) -> None:
    with pytest.raises(Problem) as caught:
        read_update(json.dumps(body).encode())
    assert (caught.value.code, caught.value.message[: len(message)]) == (code, message)
