"""
The rules of checks, endpoints, notification rules and Telegraf configurations (docs/reference/package-format.md,
"Checks" to "Telegraf configurations").
"""

import pytest

from tests.parser.parsing import document, objects, parse_text, places, spec

CHECK = "every: 1m\nquery: x\nstatusMessageTemplate: m"
THRESHOLD = CHECK + "\nthresholds:\n"
HTTP = "url: http://x\nmethod: POST\n"
RULE = "endpointName: hook\nevery: 1m\nstatusRules: [{currentLevel: crit}]"
HOOK = document("NotificationEndpointSlack", "url: http://x", "hook")

CHECK_ROWS = [
    ("", ["every", "query", "statusMessageTemplate"]),
    ("every: 0s\nquery: x\nstatusMessageTemplate: m", ["every"]),
    ("every: 1 m\nquery: x\nstatusMessageTemplate: m", ["every"]),
    ("every: -5m\nquery: x\nstatusMessageTemplate: m", []),
    ("every: 1m\nquery: ' '\nstatusMessageTemplate: ' '", ["query"]),
    (CHECK + "\nstatus: off", ["status"]),
    (CHECK + "\nstatus: ' '", []),
    (CHECK + "\nstatus: ' Inactive '", []),
]
ROWS = {
    "CheckThreshold": [
        *((fields, [*paths, "thresholds"]) for fields, paths in CHECK_ROWS),
        (CHECK + "\nthresholds: []", ["thresholds"]),
        (CHECK + "\nthresholds: [5]", ["thresholds"]),
        (THRESHOLD + "- {type: Greater, level: ' crit ', value: 1}", []),
        (THRESHOLD + "- {type: inside_range, level: any, min: 3, max: 3}", []),
        (THRESHOLD + "- {type: greater, level: UNKNOWN}\n- {level: ok}", ["level[0]", "type[1]"]),
        (THRESHOLD + "- {min: 2}\n- dropped\n- {type: x, level: ok}", ["level[0]", "type[0]", "min[0]", "type[1]"]),
        (THRESHOLD + "- {type: lesser, level: ok, min: 1.5, max: '2'}", ["min[0]"]),
    ],
    "CheckDeadman": [*CHECK_ROWS, (CHECK + "\nlevel: nonsense\nstaleTime: x\ntimeSince: 5", [])],
    "NotificationEndpointSlack": [
        ("", ["url"]),
        ("url: ''\nstatus: on", ["url", "status"]),
        ("url: 123", []),
        ("url: http://x\nstatus: ''", []),
        ("url: http://x\ntoken: {secretRef: {}}", []),
    ],
    "NotificationEndpointPagerDuty": [
        ("url: x", ["routingKey"]),
        ("url: x\nroutingKey: null", ["routingKey"]),
        ("url: x\nroutingKey: ''", []),
        ("url: x\nroutingKey: {secretRef: {key: k}}", []),
        ("status: off", ["url", "status", "routingKey"]),
    ],
    "NotificationEndpointHTTP": [
        ("", ["url", "method", "type"]),
        ("url: x\nmethod: ' post '\ntype: None", []),
        (HTTP + "type: basic", ["password", "username"]),
        (HTTP + "type: basic\npassword: ''\nusername: {envRef: {key: k}}", []),
        (HTTP + "type: bearer\nusername: x", ["token"]),
        (HTTP + "type: digest", ["type"]),
        ("url: x\nmethod: PUSH\ntype: bearer", ["method", "token"]),
    ],
    "NotificationRule": [
        (RULE, []),
        ("", ["endpointName", "every", "statusRules"]),
        ("endpointName: ''\nevery: 1m\nstatusRules: [{currentLevel: ok}]", ["endpointName"]),
        ("endpointName: {envRef: {key: e, default: hook}}\nevery: 1m\nstatusRules: [{currentLevel: ok}]", []),
        ("endpointName: hook\nevery: 0\nstatus: x\nstatusRules: 5", ["every", "status", "statusRules"]),
        (
            "endpointName: hook\nevery: 1m\nstatusRules: [{}, {currentLevel: ok, previousLevel: x}]\n"
            "tagRules: [{operator: Equal}, {operator: like}, {}]",
            [
                "statusRules.currentLevel[0]",
                "statusRules.previousLevel[1]",
                "tagRules.operator[1]",
                "tagRules.operator[2]",
            ],
        ),
        (RULE + "\ntagRules: [dropped, {key: a, value: b}]", ["tagRules.operator[0]"]),
    ],
    "Telegraf": [("", ["config"]), ("config: ''", ["config"]), ("config: ' '", []), ("config: 5", [])],
}


@pytest.mark.parametrize(("kind", "fields", "expected"), [(kind, *row) for kind, rows in ROWS.items() for row in rows])
def test_the_rules_of_a_kind_hold(kind: str, fields: str, expected: list[str]) -> None:
    found = places(document(kind, fields) + "---\n" + HOOK)
    assert [place.partition("@")[0] for place in found] == [f"root[0].spec.{path}" for path in expected]


def test_every_violation_below_a_list_has_its_own_location() -> None:
    text = document("CheckThreshold", THRESHOLD + "- {level: x, type: y, min: 2}")
    assert places(text) == [
        "root[0].spec.level[0]@10:13",
        "root[0].spec.type[0]@10:22",
        "root[0].spec.min[0]@10:30",
    ]


def test_families_share_names_across_their_kinds_in_the_order_of_the_table() -> None:
    deadman, threshold = (
        document("CheckDeadman", CHECK),
        document("CheckThreshold", THRESHOLD + "- {type: greater, level: ok}"),
    )
    slack = document("NotificationEndpointSlack", "url: x\nname: Shown", "a")
    http = document("NotificationEndpointHTTP", HTTP + "type: none\nname: Shown", "b")
    found = places("---\n".join([deadman, threshold, slack, http]))
    assert [place.partition("@")[0] for place in found] == ["root[0].metadata.name", "root[2].spec.name"]


def test_a_rule_finds_an_endpoint_with_faults_but_none_without_an_identity() -> None:
    rule = document("NotificationRule", RULE)
    faulty = document("NotificationEndpointSlack", "url: ''", "hook")
    nameless = document("NotificationEndpointSlack", "url: x", "Hook")
    assert [place.partition("@")[0] for place in places(f"{rule}---\n{faulty}")] == ["root[1].spec.url"]
    assert [place.partition("@")[0] for place in places(f"{rule}---\n{nameless}")] == [
        "root[0].spec.endpointName",
        "root[1].metadata.name",
    ]


def test_a_check_keeps_what_its_thresholds_use() -> None:
    thresholds = (
        "- {type: GREATER, level: crit, value: 1.0, min: 3, max: 4}\n"
        "- {type: outside_range, level: ok, min: -1, max: 0, value: 5}"
    )
    fields = THRESHOLD.replace("1m", "1500ms") + thresholds + "\ntags: [{key: a, value: 1}, x]"
    assert spec(document("CheckThreshold", fields)) == {
        "name": "thing",
        "description": "",
        "every": "1s500ms",
        "offset": "",
        "query": "x",
        "statusMessageTemplate": "m",
        "status": "active",
        "tags": [{"key": "a", "value": "1"}],
        "thresholds": [
            {"type": "greater", "level": "CRIT", "allValues": False, "value": 1},
            {"type": "outside_range", "level": "OK", "allValues": False, "min": -1, "max": 0},
        ],
    }


@pytest.mark.parametrize(("level", "kept"), [("crit", "CRIT"), ("Any", "ANY"), (" crit", "UNKNOWN"), ("x", "UNKNOWN")])
def test_the_level_of_a_deadman_check_is_one_it_knows(level: str, kept: str) -> None:
    assert spec(document("CheckDeadman", f"{CHECK}\nlevel: '{level}'"))["level"] == kept


def test_an_endpoint_holds_the_keys_of_its_secrets_and_supplied_values() -> None:
    fields = HTTP + "type: basic\nusername: {envRef: {key: user, default: guest}}\npassword: {secretRef: {key: pw}}"
    text = document("NotificationEndpointHTTP", fields)
    [guest] = objects(text)
    assert guest.spec.value["username"] == "guest"
    assert guest.spec.value["password"] == {"secretRef": {"key": "pw"}}
    assert objects(text, {"user": "root"})[0].spec.value["username"] == "root"
    assert guest.env_references == ()


def test_an_endpoint_registers_the_references_of_all_credentials() -> None:
    fields = "url: x\npassword: {secretRef: {key: pw}}\nroutingKey: {envRef: {key: route}}"
    parsed = parse_text(document("NotificationEndpointSlack", fields))
    assert (parsed.missing_env_refs, parsed.missing_secrets) == (("route",), ("pw",))


def test_a_rule_keeps_the_name_of_its_endpoint_and_sorted_rules() -> None:
    fields = (
        "endpointName: {envRef: {key: e}}\nevery: 1m\nchannel: '#a'\n"
        "statusRules: [{currentLevel: warn}, {currentLevel: crit, previousLevel: ok}]\n"
        "tagRules: [{key: b, value: x, operator: equal}, {key: a, value: y, operator: NotEqual}]"
    )
    endpoint = document("NotificationEndpointSlack", "url: x", "env-e")
    [rule, _] = objects(document("NotificationRule", fields) + "---\n" + endpoint)
    assert rule.spec.value["endpointName"] == "env-e"
    assert [entry["currentLevel"] for entry in rule.spec.value["statusRules"]] == ["CRIT", "WARN"]
    assert [entry["key"] for entry in rule.spec.value["tagRules"]] == ["a", "b"]
    assert [reference.resource_field for reference in rule.env_references] == ["spec.endpointName"]
