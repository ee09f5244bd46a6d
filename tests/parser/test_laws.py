"""Laws of parsing over packages with every field of every kind."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import assume, event, given
from hypothesis import strategies as st

from parser_svc.package import ParseOptions, parse
from parser_svc.render import render
from parser_svc.sources import Encoding, Source
from services.core.errors import PkgerError
from services.core.model import Object, Package, Violation
from services.kinds.diagnostics import Code
from services.kinds.summary import summary_document
from tests.parser.parsing import edited, parse_text
from tests.parser.written import FOUND, environments, packages


class _Quoting(yaml.SafeDumper):
    """Quotes every text, as PyYAML leaves texts without quotes that pkger reads as other scalars."""


_Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def as_yaml(documents: list[dict[str, Any]]) -> str:
    return yaml.dump_all(documents, Dumper=_Quoting, allow_unicode=True)


def shown(violations: tuple[Violation, ...]) -> list[tuple[str, str, str]]:
    return [(violation.kind, violation.path, violation.reason.partition(" (a.yml")[0]) for violation in violations]


def without_locations(package: Package | None) -> list[Object] | None:
    """The objects without their locations."""
    return [item._replace(location=None) for item in package.objects] if package else None


@given(packages, environments)
def test_yaml_and_json_of_the_same_objects_say_the_same(documents: list[dict[str, Any]], env: dict[str, Any]) -> None:
    from_yaml = parse_text(as_yaml(documents), env)
    from_json = parse_text(json.dumps(documents), env, Encoding.JSON)
    assert without_locations(from_yaml.package) == without_locations(from_json.package)
    assert shown(from_yaml.violations) == shown(from_json.violations)
    assert from_yaml.missing_env_refs == from_json.missing_env_refs
    event(f"valid: {from_yaml.package is not None}")


@pytest.mark.parametrize("encoding", [Encoding.YAML, Encoding.JSON])
@given(documents=packages, env=environments)
def test_a_package_written_back_parses_to_itself(
    encoding: Encoding, documents: list[dict[str, Any]], env: dict[str, Any]
) -> None:
    package = parse_text(as_yaml(documents), env).package
    assume(package is not None)
    assert package is not None
    again = parse_text(render(package, encoding), env, encoding)
    assert again.violations == ()
    assert again.package is not None
    assert without_locations(again.package) == without_locations(package)
    assert summary_document(again.package.objects, {}) == summary_document(package.objects, {})


@given(
    packages, st.lists(st.sampled_from(["---\n", "--- ~\n", "---\n# a comment\n", "--- null\n...\n"])), st.integers(0)
)
def test_documents_without_content_change_nothing(
    documents: list[dict[str, Any]], empty: list[str], place: int
) -> None:
    texts = [f"---\n{as_yaml([document])}" for document in documents]
    place %= len(texts) + 1
    parsed = parse_text("".join([*texts[:place], *empty, *texts[place:]]))
    expected = parse_text("".join(texts))
    assert without_locations(parsed.package) == without_locations(expected.package)
    assert shown(parsed.violations) == shown(expected.violations)


@given(packages, st.randoms(use_true_random=False))
def test_the_order_of_documents_does_not_change_the_set_of_violations(
    documents: list[dict[str, Any]], chance: Any
) -> None:
    # Which of two objects with one name is the later one depends on the order, so names differ here.
    named = [_named(document, number) for number, document in enumerate(documents)]
    numbered = list(enumerate(named))
    chance.shuffle(numbered)
    places = {f"root[{place}]": f"root[{number}]" for place, (number, _) in enumerate(numbered)}

    def found(texts: list[dict[str, Any]], rename: dict[str, str]) -> set[tuple[str, str]]:
        violations = parse_text(as_yaml(texts)).violations
        parts = [(violation.kind, *violation.path.partition(".")) for violation in violations]
        return {(kind, rename.get(root, root) + dot + rest) for kind, root, dot, rest in parts}

    assert found(named, {}) == found([item for _, item in numbered], places)


def _named(document: dict[str, Any], number: int) -> dict[str, Any]:
    if number < len(FOUND):
        return document
    spec = {**document["spec"], "name": f"Name {number}"}
    return {**document, "metadata": {"name": f"n{number}"}, "spec": spec}


@given(packages)
def test_every_violation_and_warning_has_a_location(documents: list[dict[str, Any]]) -> None:
    parsed = parse_text(as_yaml(documents))
    for violation in (*parsed.violations, *parsed.warnings):
        assert violation.location.line > 0
        assert violation.location.column > 0
        assert violation.end.line == violation.location.line
        assert violation.end.column >= violation.location.column
        assert violation.code in set(Code)


@given(
    packages, st.sampled_from([("description", "descriptio"), ("active", "aktive"), ('"Label"', '"Labels"'), ("", "")])
)
def test_a_fix_removes_its_violation(documents: list[dict[str, Any]], mistake: tuple[str, str]) -> None:
    text = as_yaml(documents).replace(*mistake, 5 if mistake[0] else 0)
    parsed = parse_text(text)
    for violation in (*parsed.violations, *parsed.warnings):
        for fix in violation.fixes:
            event(violation.code)
            [edit] = fix.edits
            again = parse_text(edited(text, edit))
            left = {(each.path, each.code) for each in (*again.violations, *again.warnings)}
            assert (violation.path, violation.code) not in left


@given(packages, environments)
def test_valid_parts_can_be_summarised(documents: list[dict[str, Any]], env: dict[str, Any]) -> None:
    parsed = parse([Source("a.yml", as_yaml(documents), Encoding.YAML)], env, ParseOptions(keep_valid_parts=True))
    assert parsed.package is not None
    json.dumps(summary_document(parsed.package.objects, {}))


NEARLY = st.lists(
    st.sampled_from(
        [
            *("apiVersion: influxdata.com/v2alpha1\n", "kind: ", "Bucket\n", "Task\n", "Dashboard\n", "metadata:\n"),
            *("  name: ", "spec:\n", "---\n", "- ", "  ", "{", "}", "[", "]", '"', "'", "|\n", "&a ", "*a ", "<<: "),
            *(
                "charts:\n",
                "query: ",
                "option params = {a: ",
                "every: 1h\n",
                "\t",
                "\x00",
                "\ufeff",
                "é",
                "!!int ",
                "#",
            ),
        ]
    )
    | st.text(max_size=4),
    max_size=30,
).map("".join)


@given(NEARLY, st.sampled_from([None, *Encoding]))
def test_no_text_makes_the_parser_raise_anything_else_than_an_error_of_its_own(text: str, encoding: Any) -> None:
    try:
        parse_text(text, {}, encoding)
    except PkgerError as error:
        problem = str(error)
        assert problem.startswith("a.yml")
