"""Every rule of docs/reference/package-format.md, "Objects" and "Kinds" that is served, with path, line and column."""

import pytest

from services.core.model import Location
from tests.parser.parsing import document, objects, parse_text, places, reasons, spec

LABEL = document("Label", "name: Good")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind:", "kind@1:6"),
        ("metadata: {}", "kind@1:1"),
        ("kind: label", "kind@1:7"),
        ("kind: Package", "kind@1:7"),
        ("kind: 5", "kind@1:7"),
        ("kind: telegraf", "kind@1:7"),
        ("kind: Label", "apiVersion@1:1"),
        ("kind: Label\napiVersion: 0.1.0", "apiVersion@2:13"),
        ("kind: Label\napiVersion: influxdata.com/V2alpha1", "apiVersion@2:13"),
        ("kind: Label\napiVersion: influxdata.com/v2alpha1", "metadata.name@1:1"),
        ("kind: Label\napiVersion: influxdata.com/v2alpha1\nmetadata: {}", "metadata.name@3:1"),
    ],
)
def test_the_envelope_is_checked_step_by_step(text: str, expected: str) -> None:
    assert places(text) == [f"root[0].{expected}"]


@pytest.mark.parametrize(
    "name", ["a", "1", "a-b", "a_b", "a__b", "1-a", "a" * 63, "123", "0x10", "{envRef: {key: a-b}}"]
)
def test_a_meta_name_is_a_dns_label_that_may_hold_underscores(name: str) -> None:
    assert parse_text(document("Label", "name: Good", name)).violations == ()


@pytest.mark.parametrize(
    "name",
    [
        *("", '""', "A", "-a", "a-", "_a", "a_", "a.b", "a b", '"a\\n"', "é", "a" * 64, "12.5", "true", "2020-01-01"),
        *("{envRef: {key: A}}", "{envRef: {key: a, default: B}}", "{secretRef: {key: a}}", "{envRef: {default: a}}"),
    ],
)
def test_other_meta_names_are_refused(name: str) -> None:
    [violation] = parse_text(document("Label", "name: Good", name)).violations
    assert violation.path == "root[0].metadata.name"


INVALID_NAME_ROWS = [
    (document("Label", "name: x", "Bad"), ["root[0].metadata.name", "root[0].spec.name"]),
    (document("Label", "", '""'), ["root[0].metadata.name"]),
    (document("Label", "", "A"), ["root[0].metadata.name"]),
    (
        document("Bucket", "retentionRules: [{type: x}]\nassociations: [{kind: Label, name: y}]", "Bad"),
        [
            "root[0].metadata.name",
            "root[0].spec.retentionRules[0].everySeconds",
            "root[0].spec.retentionRules[0].type",
            "root[0].associations[0]",
        ],
    ),
    (
        document("NotificationRule", "endpointName: y\nevery: 1m\nstatusRules: [{currentLevel: OK}]", "Bad"),
        ["root[0].metadata.name", "root[0].spec.endpointName"],
    ),
]


@pytest.mark.parametrize(("text", "expected"), INVALID_NAME_ROWS)
def test_an_object_with_an_invalid_name_is_checked_whole(text: str, expected: list[str]) -> None:
    assert [violation.path for violation in parse_text(text).violations] == expected


def test_a_reference_to_an_object_with_an_invalid_name_adds_no_violation() -> None:
    text = "---\n".join(
        [
            document("Label", "name: Good", "Bad"),
            document("NotificationEndpointSlack", "url: https://example.com", "Also Bad"),
            document(
                "NotificationRule",
                "endpointName: Also Bad\nevery: 1m\nmessageTemplate: x\nstatusRules: [{currentLevel: OK}]\n"
                "associations: [{kind: Label, name: Bad}, {kind: Label, name: Bad}]",
            ),
        ]
    )
    parsed = parse_text(text, keep_valid_parts=True)
    found = [violation.path for violation in parsed.violations]
    assert found == ["root[0].metadata.name", "root[1].metadata.name", "root[2].associations[1]"]
    assert parsed.package is not None
    [rule] = parsed.package.objects
    assert (rule.key.name, rule.associations) == ("thing", ())


def test_a_missing_name_is_no_name_that_others_can_refer_to() -> None:
    text = document("Label", "name: Good", '""') + "---\n" + document("Bucket", "associations: [{kind: Label}]")
    found = [violation.path for violation in parse_text(text).violations]
    assert found == ["root[0].metadata.name", "root[1].associations[0]"]


def test_the_references_of_an_object_with_an_invalid_name_count() -> None:
    spec = "name: {envRef: {key: shown}}\nurl: https://example.com\ntoken: {secretRef: {key: slack}}"
    parsed = parse_text(document("NotificationEndpointSlack", spec, "Bad"), {"shown": "Chat"})
    assert (parsed.unused_env_keys, parsed.missing_secrets) == ((), ("slack",))


def test_an_object_with_an_invalid_name_has_its_display_name() -> None:
    rest = "name: Good\nretentionRules: [{type: expire, everySeconds: 1}]"
    specs = (("Bad", "name: Good"), ("Worse", rest), ('""', ""), ("Bad", ""))
    text = "---\n".join(document("Bucket", spec, name) for name, spec in specs)
    assert [violation.path for violation in parse_text(text).violations] == [
        "root[0].metadata.name",
        "root[1].metadata.name",
        "root[1].spec.name",
        "root[1].spec.retentionRules[0].everySeconds",
        "root[2].metadata.name",
        "root[3].metadata.name",
    ]


def test_numbers_are_meta_names_in_decimal() -> None:
    assert objects(document("Label", "name: Good", "0x10"))[0].key.name == "16"


BUCKET_ROWS = [
    ("retentionRules: [{type: expire}]", ["spec.retentionRules[0].everySeconds@6:20"]),
    ("retentionRules: [{type: expire, everySeconds: 3599}]", ["spec.retentionRules[0].everySeconds@6:49"]),
    ('retentionRules: [{type: expire, everySeconds: "3600"}]', ["spec.retentionRules[0].everySeconds@6:49"]),
    ("retentionRules: [{type: expire, everySeconds: 1e18}]", ["spec.retentionRules[0].everySeconds@6:49"]),
    (
        "retentionRules:\n- type: Expire\n  everySeconds: -1",
        ["spec.retentionRules[0].everySeconds@8:19", "spec.retentionRules[0].type@7:11"],
    ),
    (
        "retentionRules:\n- dropped\n- {everySeconds: 3600}\n- {type: expire}",
        ["spec.retentionRules[0].type@8:5", "spec.retentionRules[1].everySeconds@9:5"],
    ),
]


def schema(columns: str, name: str = "cpu") -> str:
    return f"measurementSchemas:\n- name: {name}\n  columns: [{columns}]"


TIME, FIELD = "{name: time, type: timestamp}", "{name: f, type: field, dataType: float}"
GOOD = f"{TIME}, {FIELD}"
COLUMNS = "spec.measurementSchemas[0].columns"
SCHEMA_ROWS = [
    (schema(GOOD), []),
    *(
        (schema(GOOD, name), ["spec.measurementSchemas[0].name@7:11"])
        for name in ("_a", '"a\\tb"', '"a\\u2003b"', "a'b", "'a\"b'", "a" * 129, '"a\ufffdb"', '""')
    ),
    ("measurementSchemas: [{columns: [" + GOOD + "]}]", ["spec.measurementSchemas[0].name@6:24"]),
    (schema(GOOD, "a b é"), []),
    (schema(GOOD + ", {name: _x, type: tag}"), [f"{COLUMNS}[2].name"]),
    (schema(GOOD + ", {name: x, type: Tag, dataType: float}"), [f"{COLUMNS}[2].type"]),
    (schema(GOOD + ", {name: x}"), [f"{COLUMNS}[2].type"]),
    (schema(FIELD + ", {name: time, type: tag}"), [f"{COLUMNS}[1].type"]),
    (schema(FIELD + ", {name: time, type: timestamp, dataType: float}"), [f"{COLUMNS}[1].dataType"]),
    (schema(FIELD + ", {name: time, type: timestamp, dataType: odd}"), []),
    (schema(GOOD + ", {name: x, type: timestamp}"), [f"{COLUMNS}[2].name"]),
    (schema(GOOD + ", {name: x, type: tag, dataType: string}"), [f"{COLUMNS}[2].dataType"]),
    (schema(GOOD + ", {name: x, type: tag, dataType: odd}"), []),
    (schema(GOOD + ", {name: x, type: field}"), [f"{COLUMNS}[2].dataType"]),
    (schema(GOOD + ", {name: x, type: field, dataType: Float}"), [f"{COLUMNS}[2].dataType"]),
    (schema(FIELD), [COLUMNS]),
    (schema(TIME), [COLUMNS]),
    ("measurementSchemas: [{name: a}]", [COLUMNS, COLUMNS]),
    (schema(GOOD + ", {name: F, type: tag}"), [COLUMNS]),
    (schema(GOOD + ", {name: \u00df, type: tag}, {name: \u1e9e, type: tag}, {name: ss, type: tag}"), [COLUMNS]),
    (schema(GOOD + ", {name: a, type: tag}, {name: a, type: tag}, {name: a, type: tag}"), [COLUMNS]),
    (schema(GOOD + ", {name: A, type: tag}, {name: a, type: tag}, {name: a, type: tag}"), [COLUMNS, COLUMNS]),
    (
        schema(GOOD + ", {name: AA, type: tag}, {name: Zz, type: tag}, {name: aa, type: tag}, {name: aA, type: tag}"),
        [COLUMNS, COLUMNS],
    ),
]

ROWS = {
    "Label": [
        ("name: x", ["spec.name@6:9"]),
        ("name: é", []),
        ("color: 5\ndescription: 6", []),
    ],
    "Bucket": [("name: x", ["spec.name@6:9"]), *BUCKET_ROWS, *SCHEMA_ROWS],
    "Variable": [
        ("type: map", ["spec.values@5:1"]),
        ("type: map\nvalues: [a]", ["spec.values@7:11"]),
        ("type: map\nvalues: {a: true, 1: b}", ["spec.values@7:11"]),
        ("type: Constant", ["spec.values@5:1"]),
        ("type: constant\nvalues: {a: b}", ["spec.values@7:11"]),
        ("type: constant\nvalues: [true, null]", ["spec.values@7:11"]),
        ("type: query\nlanguage: flux", ["spec.query@5:1"]),
        ("type: query\nlanguage: flux\nquery: ' '", ["spec.query@8:10"]),
        ("type: query\nquery: x\nlanguage: sql", ["spec.language@8:13"]),
        ("type: query", ["spec.query@5:1", "spec.language@5:1"]),
        ("type: other", []),
        ("description: x", []),
        ("name: x\ntype: ' CONSTANT '\nvalues: [1]", []),
    ],
    "Task": [
        ("query: x", ["spec.every@5:1", "spec.cron@5:1"]),
        ("query: x\nevery: 90", ["spec.every@7:10", "spec.cron@5:1"]),
        ("query: x\nevery: 1.5h\ncron: ''", ["spec.every@7:10", "spec.cron@8:9"]),
        ("query: x\nevery: -5m", []),
        ("query: x\ncron: '* * * * *'\nevery: nonsense", []),
        ("every: 1h", ["spec.query@5:1"]),
        ("every: 1h\nquery: ' '", ["spec.query@7:10"]),
        ("every: 1h\nquery: x\nstatus: on", ["spec.status@8:11"]),
        ("every: 1h\nquery: x\nstatus: ''", []),
        ("every: 1h\nquery: x\nstatus: ' InActive '", []),
        ("status: x", ["spec.every@5:1", "spec.cron@5:1", "spec.query@5:1", "spec.status@6:11"]),
    ],
    "Dashboard": [
        ("name: x", ["spec.name@6:9"]),
        ("charts: [{kind: markdown}, 5]", []),
        ("name: x\ncharts: [{kind: pie}]", ["spec.charts[0].kind@7:19", "spec.name@6:9"]),
    ],
}


@pytest.mark.parametrize(("kind", "fields", "expected"), [(kind, *row) for kind, rows in ROWS.items() for row in rows])
def test_the_rules_of_a_kind_hold(kind: str, fields: str, expected: list[str]) -> None:
    found = places(document(kind, fields))
    if all("@" in place for place in expected):
        assert found == [f"root[0].{place}" for place in expected]
    else:
        assert [place.partition("@")[0] for place in found] == [f"root[0].{path}" for path in expected]


def test_columns_that_differ_in_case_are_found_wherever_they_stand() -> None:
    columns = GOOD + ", {name: AA, type: tag}, {name: Zz, type: tag}, {name: aa, type: tag}"
    [reason] = reasons(document("Bucket", schema(columns)))
    assert "'AA' is not the only column" in reason


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("kind: label", "write Label"),
        ("kind: Labels", "write Label"),
        ("kind: Thing", "write one of Bucket, CheckDeadman, CheckThreshold, Dashboard, Label,"),
        (document("Bucket", "associations: [{kind: Label, name: Good}]", "b0") + "---\n" + LABEL, "write 'thing'"),
        (document("Bucket", "associations: [{kind: Label, name: x}]", "b0") + "---\n" + LABEL, "it has thing"),
    ],
)
def test_a_reason_names_the_way_out(text: str, way_out: str) -> None:
    [reason] = reasons(text)
    assert way_out in reason


@pytest.mark.parametrize(
    ("options", "listed", "expected"),
    [
        (
            "name: x",
            "{key: every, type: duration, default: 1d}",
            ["root[0].query", "root[0].spec.every", "root[0].spec.cron", "root[0].spec.query"],
        ),
        ("every: -1h, offset: x", "{}", ["root[0].task", "root[0].spec.every", "root[0].spec.cron"]),
        ("every: 0s", "{}", ["root[0].spec.every", "root[0].spec.cron"]),
    ],
)
def test_the_options_of_a_task_may_be_wrong_in_several_ways(options: str, listed: str, expected: list[str]) -> None:
    fields = f"query: 'option task = {{{options}}} x()'\ntask: [{listed}]"
    found = parse_text(document("Task", fields, version="v2alpha2")).violations
    assert [violation.path for violation in found] == expected
    # The script itself is not quoted as if it were wrong.
    assert not any("option task" in violation.reason for violation in found)


def test_the_kind_of_an_object_without_a_kind_is_unknown() -> None:
    assert parse_text("kind:").violations[0].kind == "unknown"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("Label", "name: Good"), ("Task", "query: x\nevery: 1h"), ("Dashboard", "name: Good"), ("Variable", "")],
)
def test_meta_names_are_unique_in_their_family(kind: str, fields: str) -> None:
    text = "---\n".join([document(kind, fields), document("Bucket", "name: other"), document(kind, "name: Else")])
    [violation] = parse_text(text).violations
    assert violation.path == "root[2].metadata.name"
    assert "root[0] (a.yml:1:1)" in violation.reason


@pytest.mark.parametrize(("kind", "unique"), [("Label", 1), ("Bucket", 1), ("Variable", 1), ("Dashboard", 0)])
def test_display_names_are_unique_for_some_kinds(kind: str, unique: int) -> None:
    text = document(kind, "name: second", "first") + "---\n" + document(kind, "", "second")
    found = [place.partition("@")[0] for place in places(text)]
    assert found == ["root[1].spec.name"] * unique


def test_an_object_dropped_for_its_display_name_still_occupies_its_meta_name() -> None:
    text = "---\n".join(
        document("Label", f"name: {shown}", name) for name, shown in (("a", "Aa"), ("b", "Aa"), ("b", "Bb"))
    )
    assert [place.partition("@")[0] for place in places(text)] == ["root[1].spec.name", "root[2].metadata.name"]


def test_a_duplicate_reports_nothing_else() -> None:
    text = document("Bucket", "name: ok") + "---\n" + document("Bucket", "name: x\nassociations: [{kind: x}]")
    assert [place.partition("@")[0] for place in places(text)] == ["root[1].metadata.name"]


ASSOCIATIONS = [
    ("- {name: thing}", ["associations[0].kind@7:5"]),
    ("- {kind: label, name: thing}", ["associations[0].kind@7:12"]),
    ("- {kind: Telegraf, name: x}\n- {kind: Check}", []),
    ("- {kind: Label, name: Good}", ["associations[0]@7:25"]),
    ("- {kind: Label}", ["associations[0]@7:5"]),
    ("- {kind: Label, name: thing}\n- {kind: Label, name: thing}", ["associations[1]@8:25"]),
    ("- {kind: Label, name: thing}", []),
    ("- dropped\n- {kind: Label, name: nope}", ["associations[0]@8:25"]),
]


@pytest.mark.parametrize(("entries", "expected"), ASSOCIATIONS)
def test_associations_name_labels_of_the_package(entries: str, expected: list[str]) -> None:
    text = document("Bucket", f"associations:\n{entries}", "b0") + "---\n" + LABEL
    assert places(text) == [f"root[0].{place}" for place in expected]


def test_faults_of_associations_come_after_all_others_of_an_object() -> None:
    text = document("Bucket", "associations: [{kind: Label, name: x}]\nname: x")
    assert [place.partition("@")[0] for place in places(text)] == ["root[0].spec.name", "root[0].associations[0]"]


def test_a_label_with_faulty_fields_exists_and_one_with_a_faulty_version_does_not() -> None:
    bucket = document("Bucket", "associations: [{kind: Label, name: thing}]", "b0")
    short, old = document("Label", "name: x"), document("Label", "name: Good", version="v1")
    assert [place.partition("@")[0] for place in places(f"{short}---\n{bucket}")] == ["root[0].spec.name"]
    assert [place.partition("@")[0] for place in places(f"{old}---\n{bucket}")] == [
        "root[0].apiVersion",
        "root[1].associations[0]",
    ]


def test_labels_are_kept_sorted_by_name() -> None:
    text = "---\n".join(
        [
            document("Task", "query: x\nevery: 1h\nassociations: [{kind: Label, name: b}, {kind: Label, name: a}]"),
            document("Label", "name: Aa", "a"),
            document("Label", "name: Bb", "b"),
        ]
    )
    assert [label.name for label in objects(text)[0].associations] == ["a", "b"]


def test_violations_come_by_object_whatever_their_kind() -> None:
    text = "---\n".join(
        [document("Task"), document("Label", "name: x", "l0"), "kind: x\n", document("Bucket", "name: x")]
    )
    found = [place.partition("@")[0] for place in places(text)]
    assert found == [
        "root[0].spec.every",
        "root[0].spec.cron",
        "root[0].spec.query",
        "root[1].spec.name",
        "root[2].kind",
        "root[3].spec.name",
    ]


def test_families_are_ignored() -> None:
    parsed = parse_text("kind: Check\n---\nkind: NotificationEndpoint\napiVersion: x\n")
    assert parsed.violations == ()
    assert parsed.package is not None
    assert parsed.package.objects == ()


def test_a_package_needs_objects_unless_it_need_not() -> None:
    [violation] = parse_text("# nothing\n").violations
    assert (violation.kind, violation.path, violation.location.source) == ("Package", "resources", "a.yml")
    assert parse_text("", allow_empty=True).package is not None


def test_a_violation_in_a_merged_or_aliased_value_points_to_the_nearest_thing() -> None:
    text = document("Bucket", "x: &x {name: y}\n<<: *x\nretentionRules: &r [{}]") + "  again: *r\n"
    assert places(text) == [
        "root[0].spec.name@5:1",
        "root[0].spec.retentionRules[0].everySeconds@8:23",
        "root[0].spec.retentionRules[0].type@8:23",
    ]


@pytest.mark.parametrize("count", [2_000, pytest.param(50_000, marks=pytest.mark.faults)])
def test_an_answer_holds_all_violations(count: int) -> None:
    parsed = parse_text(document("Bucket", f"retentionRules: [{'{},' * count}]"), warn=False)
    assert len(parsed.violations) == 2 * count
    assert parsed.violations[-1].location == Location("a.yml", 6, 20 + 3 * (count - 1))


def test_a_spec_has_every_default_filled_in() -> None:
    assert spec(document("Label")) == {"name": "thing", "description": "", "color": ""}
    assert spec(document("Dashboard")) == {"name": "thing", "description": "", "charts": []}
    assert spec(document("Variable")) == {"name": "thing", "description": "", "type": "", "selected": []}
    assert spec(document("Bucket")) == {
        "name": "thing",
        "description": "",
        "retentionRules": [],
        "schemaType": "",
        "measurementSchemas": [],
    }
    assert spec(document("Task", "every: 90m\nquery: ' x '")) == {
        "name": "thing",
        "description": "",
        "cron": "",
        "every": "1h30m0s",
        "offset": "",
        "query": "x",
        "status": "active",
    }


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("Label", "color: 5", 'color: "5"'),
        (
            "Bucket",
            "retentionRules: [{type: expire, everySeconds: 3.6e3}]",
            "retentionRules: [{everySeconds: 3600, type: expire}]",
        ),
        (
            "Bucket",
            "retentionRules: [{type: expire, everySeconds: 3600}, {type: expire, everySeconds: 7200}]",
            "retentionRules: [{type: expire, everySeconds: 3600.9}]",
        ),
        ("Bucket", schema(f"{TIME}, {FIELD}"), schema(f"{FIELD}, {TIME}")),
        ("Task", "query: x\nevery: 1h", "query: ' x'\nevery: 60m\nstatus: Active\noffset: nonsense"),
        ("Variable", "type: map\nvalues: {b: 1, a: 2}", "type: MAP\nvalues: {a: '2', b: '1', c: [x]}\nquery: y"),
        ("Dashboard", "charts: [{kind: markdown, width: 3.0}]", "charts: [dropped, {kind: MarkDown, width: 3}]"),
    ],
)
def test_the_same_content_has_the_same_spec(kind: str, one: str, other: str) -> None:
    assert objects(document(kind, one))[0].spec == objects(document(kind, other))[0].spec
