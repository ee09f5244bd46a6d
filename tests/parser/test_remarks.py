"""Warnings about content that breaks no rule but looks like a mistake. They never change the result."""

import pytest

from parser_svc.package import parse
from parser_svc.sources import Encoding, Source
from tests.parser.parsing import document, objects, parse_text, warnings

CANARY = "canary-8a1f"
NAMED = "{secretRef: {key: k}}"
HTTP = "url: x\nmethod: post\n"
WRITTEN_OUT = "this credential is written out, and no plan accepts that; write {secretRef: {key: KEY}}"
FROM_ENVIRONMENT = (
    "this credential comes from an environment value, and no plan accepts that; write {secretRef: {key: KEY}}"
)

CHECK = "every: 1m\nquery: x\nstatusMessageTemplate: m\n"


ROWS = {
    "Label": [
        ("colour: red", "spec.colour@6:3", "will be ignored; did you mean 'color'?"),
        ("associations: []", "spec.associations@6:3", "there is no field 'associations' here"),
        ("zzz: 1", "spec.zzz@6:3", "there is no field 'zzz' here, so it will be ignored"),
        ("description: true", "spec.description@6:16", "found true, which will be ignored; write a text"),
        ("description: 2020-01-01", "spec.description@6:16", "found an unquoted date, which will be ignored"),
        ("color: 000000", "spec.color@6:10", "this is a number, which becomes the text '0'; put it in quotes"),
        ("color: 1e3", "spec.color@6:10", "becomes the text '1000'"),
    ],
    "Bucket": [
        ("asociations: []", "spec.asociations@6:3", "did you mean 'associations'?"),
        ("associations: [{kind: Check, nam: x}]", "spec.associations[0].nam@6:32", "did you mean 'name'?"),
        ("associations: [5]", "spec.associations@6:17", "1 of its items will be ignored"),
        ("associations: {kind: Label}", "spec.associations@6:17", "will be ignored; write a list of mappings"),
        ("name: [x]", "spec.name@6:9", "this is neither a text nor a reference"),
        (
            "retentionRules: [{type: expire, everySeconds: 3600.5}]",
            "spec.retentionRules[0].everySeconds@6:49",
            "3600.5 will be cut to the whole number 3600",
        ),
        (
            "retentionRules: [{type: expire, everySeconds: 3600}, {type: expire, everySeconds: 7200}]",
            "spec.retentionRules[1]@6:56",
            "only the first retention rule takes effect",
        ),
    ],
    "Variable": [
        ("type: choice", "spec.type@6:9", "there is no variable type 'choice'"),
        ("", "spec@5:6", "a variable without a type has no values"),
    ],
    "CheckDeadman": [
        (CHECK, "spec@6:3", "a check without a level reports UNKNOWN"),
        (CHECK + "level: fatal", "spec.level@9:10", "this is no level and will become UNKNOWN"),
        (CHECK + "level: ok\nstaleTime: 5", "spec.staleTime@10:14", "the number 5, which will be ignored"),
        (CHECK + "level: ok\nreportZero: 'true'", "spec.reportZero@10:15", "write true or false, without quotes"),
    ],
    "Task": [
        (
            "every: 1h\nquery: x\nparams: [{key: a, type: duraton}, {key: b, type: Int}]",
            "spec.params[0].type@8:27",
            "'duraton' means nothing here; write bool, duration, float, int, string or time",
        ),
    ],
    "NotificationEndpointSlack": [
        (f"url: x\ntoken: {CANARY}", "spec.token@7:10", WRITTEN_OUT),
        (f"url: x\ntoken: '{CANARY}'", "spec.token@7:10", WRITTEN_OUT),
        ("url: x\ntoken: 17", "spec.token@7:10", WRITTEN_OUT),
        ("url: x\ntoken: ' '", "spec.token@7:10", WRITTEN_OUT),
        (f"url: x\ntoken: |\n  {CANARY}", "spec.token@7:10", WRITTEN_OUT),
        ("url: x\ntoken: {envRef: {key: k}}", "spec.token@7:10", FROM_ENVIRONMENT),
        (f"url: x\ntoken: {{envRef: {{key: k, default: {CANARY}}}}}", "spec.token@7:10", FROM_ENVIRONMENT),
        ("url: x\ntoken: {secretRef: k}", "spec.token@7:10", "this is neither a text nor a reference"),
    ],
    "NotificationEndpointPagerDuty": [(f"url: x\nroutingKey: {CANARY}", "spec.routingKey@7:15", WRITTEN_OUT)],
    "NotificationEndpointHTTP": [
        (HTTP + f"type: none\ntoken: {CANARY}", "spec.token@9:10", WRITTEN_OUT),
        (HTTP + f"type: basic\npassword: {NAMED}\nusername: {CANARY}", "spec.username@10:13", WRITTEN_OUT),
        (HTTP + f"type: basic\nusername: {NAMED}\npassword: {CANARY}", "spec.password@10:13", WRITTEN_OUT),
    ],
    "Telegraf": [("config: x\nDescription: y", "spec.Description@7:3", "did you mean 'description'?")],
    "Dashboard": [
        ("charts: [{kind: markdown, nots: x}]", "spec.charts[0].nots@6:29", "did you mean 'note'?"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "fields", "place", "text"), [(kind, *row) for kind, rows in ROWS.items() for row in rows]
)
def test_a_value_that_means_something_else_than_it_seems_is_a_warning(
    kind: str, fields: str, place: str, text: str
) -> None:
    package = document(kind, fields)
    [warning] = warnings(package)
    assert warning.startswith(f"root[0].{place}: ")
    assert text in warning
    assert CANARY not in warning
    assert objects(package)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Label", "color: 5\ndescription: null\nname: 12.5"),
        ("Bucket", "retentionRules: [{type: expire, everySeconds: 3.6e3}]\nname: {envRef: {key: k}}"),
        ("Task", "every: 1h\nquery: x\nstatus: ' Active '"),
        ("Dashboard", "charts: [{kind: Markdown, xPos: 1, queries: [], staticLegend: {show: true}}]"),
        ("NotificationEndpointSlack", f"url: x\ntoken: {NAMED}"),
        ("NotificationEndpointSlack", "url: x\ntoken: ''"),
        ("NotificationEndpointSlack", "url: x\ntoken: {secretRef: {key: k}, envRef: {key: e}}"),
        ("NotificationEndpointHTTP", HTTP + "type: basic\nusername: ''\npassword: ''"),
    ],
)
def test_usual_content_gives_no_warning(kind: str, fields: str) -> None:
    assert warnings(document(kind, fields)) == []


def test_the_envelope_is_looked_at_too() -> None:
    text = "apiversion: x\n" + document("Label").replace("  name:", "  labels: {}\n  name:") + "name: stray\n"
    assert [warning.partition(" ")[0] for warning in warnings(text)] == [
        "root[0].apiversion@1:1:",
        "root[0].name@8:1:",
        "root[0].metadata.labels@5:3:",
    ]
    assert "did you mean 'apiVersion'?" in warnings(text)[0]


def test_objects_of_a_family_are_ignored_with_a_warning() -> None:
    [warning] = warnings("kind: Check\nx: y\n")
    assert (
        warning
        == "root[0].kind@1:7: Check is a family of kinds, so this object will be ignored; write the kind that you mean"
    )


def test_keys_of_a_json_envelope_may_be_spelled_in_any_case() -> None:
    text = '[{"Kind": "Label", "APIVERSION": "influxdata.com/v2alpha1", "metadata": {"name": "a1"}, "other": 1}]'
    parsed = parse([Source("a.json", text, Encoding.JSON)], {})
    assert [warning.path for warning in parsed.warnings] == ["root[0].other"]


def test_generated_text_has_no_locations_and_no_warnings_about_its_spelling() -> None:
    text = document("Label", "color: 000000\ncolour: x")
    parsed = parse([Source("a.jsonnet", text, Encoding.YAML, generated=True)], {})
    assert [(warning.path, str(warning.location)) for warning in parsed.warnings] == [
        ("root[0].spec.colour", "a.jsonnet")
    ]


def test_warnings_can_be_left_out() -> None:
    assert parse_text(document("Label", "colour: x"), warn=False).warnings == ()


@pytest.mark.parametrize("warn", [True, False])
def test_credentials_are_located_with_and_without_warnings(warn: bool) -> None:
    endpoints = [
        document("NotificationEndpointHTTP", HTTP + f"type: basic\nusername: {CANARY}\npassword: {CANARY}", "a"),
        document("Label", "color: red", "red"),
        document("NotificationEndpointSlack", f"url: x\ntoken: {NAMED}", "c"),
        document("NotificationEndpointSlack", "url: x\ntoken: {envRef: {key: k}}", "d"),
    ]
    parsed = parse_text("---\n".join(endpoints), warn=warn)
    assert [(str(each.key), each.pointer, str(each.location)) for each in parsed.credentials] == [
        ("NotificationEndpointHTTP 'a'", "/username", "a.yml:9:13"),
        ("NotificationEndpointHTTP 'a'", "/password", "a.yml:10:13"),
        ("NotificationEndpointSlack 'd'", "/token", "a.yml:33:10"),
    ]
    assert parsed.violations == ()
    assert len(parsed.warnings) == (3 if warn else 0)
    assert CANARY not in str(parsed.credentials) + str(parsed.warnings)


def test_a_credential_is_located_beside_violations_too() -> None:
    faulty = document("NotificationEndpointSlack", f"url: ''\ntoken: {CANARY}")
    parsed = parse([Source("a.json", "[]", Encoding.JSON), Source("b.yml", faulty, Encoding.YAML)], {})
    assert [str(violation.location) for violation in parsed.violations] == ["b.yml:6:8"]
    assert [str(each.location) for each in parsed.credentials] == ["b.yml:7:10"]


def test_of_generated_text_a_credential_has_the_name_of_its_source() -> None:
    text = document("NotificationEndpointSlack", f"url: x\ntoken: {CANARY}")
    parsed = parse([Source("a.jsonnet", text, Encoding.YAML, generated=True)], {})
    assert [str(each.location) for each in parsed.credentials] == ["a.jsonnet"]
