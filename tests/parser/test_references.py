"""References to environment values and secrets (docs/reference/package-format.md, "References")."""

from typing import Any

import pytest

from tests.parser.parsing import document, objects, parse_text, places, spec


def reference(key: str, default: str | None = None) -> str:
    return f"{{envRef: {{key: {key}{'' if default is None else f', default: {default}'}}}}}"


@pytest.mark.parametrize(
    ("default", "env", "shown"),
    [
        (None, {}, "env-k"),
        ("word", {}, "word"),
        ("12.0", {}, "12"),
        ("true", {}, "env-k"),
        ("''", {}, "env-k"),
        ("word", {"k": "supplied"}, "supplied"),
        ("word", {"k": 12.5}, "12.5"),
        ("word", {"k": True}, "word"),
        ("word", {"k": ""}, "word"),
        ("word", {"k": None}, "word"),
        (None, {"other": "x"}, "env-k"),
    ],
)
def test_a_name_is_the_supplied_value_else_the_default_else_made_of_the_key(
    default: str | None, env: dict[str, Any], shown: str
) -> None:
    assert spec(document("Label", f"name: {reference('k', default)}"), env)["name"] == shown


@pytest.mark.parametrize(
    ("env", "missing"), [({}, ("k",)), ({"k": None}, ("k",)), ({"k": ""}, ()), ({"k": False}, ()), ({"k": "ab"}, ())]
)
def test_a_default_does_not_make_a_key_supplied_but_any_value_does(
    env: dict[str, Any], missing: tuple[str, ...]
) -> None:
    assert parse_text(document("Label", f"name: {reference('k', 'word')}"), env).missing_env_refs == missing


def test_a_secret_decides_the_value_and_is_missing() -> None:
    parsed = parse_text(document("Label", "name: {secretRef: {key: s}, envRef: {key: k, default: word}}"))
    assert parsed.package is not None
    assert parsed.package.objects[0].spec.display_name == "thing"
    assert (parsed.missing_env_refs, parsed.missing_secrets) == (("k",), ("s",))


@pytest.mark.parametrize(
    "value", ["{envRef: {default: abc}}", "{envRef: k}", "{envRef: {key: [k]}}", "{}", "[x]", "{x: y}"]
)
def test_a_mapping_without_a_usable_key_is_no_reference(value: str) -> None:
    [item] = objects(document("Label", f"name: {value}"))
    assert (item.spec.display_name, item.env_references) == ("thing", ())


def test_a_reference_elsewhere_is_an_absent_field() -> None:
    assert spec(document("Label", f"color: {reference('k', 'red')}"))["color"] == ""


def test_a_supplied_meta_name_keeps_to_the_format() -> None:
    """InfluxDB accepts any value; pkger checks environment values by the rules of names."""
    text = document("Label", "name: Good", reference("k", "fine"))
    assert objects(text, {"k": "good"})[0].key.name == "good"
    assert len(places(text, {"k": "Any Text!"})) == 1


def test_other_rules_apply_to_supplied_values() -> None:
    assert places(document("Label", f"name: {reference('k', 'fine')}"), {"k": 5}) == ["root[0].spec.name@6:9"]


def test_a_package_must_be_valid_without_the_supplied_values() -> None:
    assert places(document("Label", f"name: {reference('k', 'x')}"), {"k": "fine"}) == ["root[0].spec.name@6:9"]


def test_uniqueness_is_about_resolved_names() -> None:
    text = document("Label", "name: Aa", reference("a")) + "---\n" + document("Label", "name: Bb", reference("b"))
    assert places(text) == []
    assert places(text, {"a": "same", "b": "same"}) == ["root[1].metadata.name@11:9"]


def test_associations_follow_the_resolved_name_of_a_label() -> None:
    label = document("Label", "name: Good", reference("k", "here"))
    bucket = document("Bucket", f"associations: [{{kind: Label, name: {reference('k', 'here')}}}]", "b0")
    literal = document("Bucket", "associations: [{kind: Label, name: here}]", "b1")
    assert places(f"{label}---\n{bucket}---\n{literal}") == []
    assert places(f"{label}---\n{bucket}", {"k": "there"}) == []
    assert places(f"{label}---\n{literal}", {"k": "there"}) == ["root[1].associations[0]@13:38"]


def test_references_are_listed_in_the_order_of_their_fields() -> None:
    label = document("Label", "name: Good", reference("z-label", "zz"))
    plain = document("Label", "name: Else", "aa")
    variable = document(
        "Variable",
        f"name: {reference('b')}\nassociations: [{{kind: Label, name: zz}}, {{kind: Label, name: aa}}]\n"
        f"selected: [literal, {reference('a', '1.0')}, {{secretRef: {{key: s}}}}, true]",
        reference("c"),
    )
    parsed = parse_text(f"{label}---\n{plain}---\n{variable}", {"a": "given"})
    assert parsed.package is not None
    item = parsed.package.objects[2]
    assert [(each.resource_field, each.env_key, each.value, each.default) for each in item.env_references] == [
        ("metadata.name", "c", None, None),
        ("spec.name", "b", None, None),
        ("spec.associations[1].name", "z-label", None, "zz"),
        ("spec.selected[1]", "a", "given", 1),
    ]
    assert item.spec.value["selected"] == ["literal", "given"]
    assert (parsed.missing_env_refs, parsed.missing_secrets) == (("b", "c", "z-label"), ("s",))


def test_dashboards_and_tasks_list_references_by_key() -> None:
    [item] = objects(document("Dashboard", f"name: {reference('a', 'fine')}", reference("b")))
    assert [each.env_key for each in item.env_references] == ["a", "b"]


def test_an_object_that_is_dropped_refers_to_nothing() -> None:
    text = document("Label", f"name: {reference('k')}") + "---\n" + document("Label", f"name: {reference('j')}")
    assert parse_text(text).missing_env_refs == ("k",)
