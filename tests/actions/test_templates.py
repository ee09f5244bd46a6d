"""Reading and rendering templates: a table for each part of the language."""

from typing import Any

import pytest

from services.actions.templates.errors import TemplateCode, TemplateError
from services.actions.templates.references import Reference, references
from services.actions.templates.rendering import render
from services.actions.templates.template import parse_template

PARAMETERS: dict[str, Any] = {
    "time": "2026-11-22T10:05:09.25Z",
    "options": {"tag": "night", "empty": "", "list": "x,y,,z", "count": "-012"},
    "object": {"name": "prod", "in": 1},
    "phases": {
        "export": {
            "output": {
                "objects": 42,
                "ratio": 0.5,
                "whole": 2.0,
                "ok": True,
                "none": None,
                "names": ["b", "a"],
                "numbers": [1, True, [2]],
                "nested": {"k": {"n": 7}},
                "largest": 2**63 - 1,
                "smallest": -(2**63),
                "long": "x" * (1 << 20),
            }
        }
    },
}

OUTPUT = "phases.export.output"

VALUES: list[tuple[str, Any]] = [
    ("no expression", "no expression"),
    ("{ } }} {% x %} {# y #}", "{ } }} {% x %} {# y #}"),
    ('{{ "{{" }}x}}', "{{x}}"),
    ('{{ "}}" }}', "}}"),
    ("a{{ 1 }}b{{ 2 }}", "a1b2"),
    ("{{1}}", 1),
    (" {{1}}", " 1"),
    ("{{ 1.5 }}{{ 2.0 }}{{ 1e3 }}{{ true }}", "1.52.01000.0true"),
    (f"{{{{ {OUTPUT}.whole }}}}", 2.0),
    (f"{{{{ {OUTPUT}.nested }}}}", {"k": {"n": 7}}),
    ("{{ object.in }}", 1),
    ('{{ object["name"] }}', "prod"),
    (f"{{{{ {OUTPUT}.names[0] + {OUTPUT}['names'][1] }}}}", "ba"),
    ("{{ default(options.none, 1) }}", 1),
    ("{{ default(phases.none.output.x, default(options.tag, 2)) }}", "night"),
    (f"{{{{ default({OUTPUT}.names[7], 'none') }}}}", "none"),
    (f"{{{{ default({OUTPUT}.none.x, 3) }}}}", 3),
    ("{{ default(failure.phase, 'none') }}", "none"),
    (f"{{{{ has({OUTPUT}.none) }}}}{{{{ has({OUTPUT}.x) }}}}", "truefalse"),
    ("{{ 1 == 1.0 }}{{ true == 1 }}{{ null == false }}", "truefalsefalse"),
    (f"{{{{ {OUTPUT}.numbers == [1.0, true, [2]] }}}}", True),
    (f"{{{{ {OUTPUT}.numbers == [1, 1, [2]] }}}}", False),
    (f"{{{{ {OUTPUT}.nested == {OUTPUT}.nested }}}}{{{{ {OUTPUT}.nested == {OUTPUT} }}}}", "truefalse"),
    (f"{{{{ {OUTPUT}.largest == 9223372036854775807.0 }}}}", False),
    ("{{ 'a' < 'b' }}{{ 'Z' >= 'a' }}{{ 2 > 1.5 }}{{ 2 <= 2.0 }}", "truefalsetruetrue"),
    (f"{{{{ 'a' in {OUTPUT}.names }}}}{{{{ 'k' in {OUTPUT}.nested }}}}{{{{ 'x' in [] }}}}", "truetruefalse"),
    ("{{ false && options.none }}{{ true || options.none }}", "falsetrue"),
    ("{{ true && true && false }}{{ false || false || true }}", "falsetrue"),
    ("{{ !true }}{{ !!true }}{{ - -3 }}", "falsetrue3"),
    ("{{ false ? 1 : false ? 2 : 3 }}{{ true ? false ? 4 : 5 : 6 }}", "35"),
    ("{{ 5 - 2 - 1 }}{{ 1.5 + 1.5 }}{{ 'a' + 'b' + 'c' }}", "23.0abc"),
    ("{{ [1] + [] + [2, 3] }}", [1, 2, 3]),
    ("{{ size('h\\u00e9\\uD83D\\uDE00') }}{{ size([1, 2]) }}{{ size(object) }}", "322"),
    ("{{ string(1.5) + string(true) + string('x') }}", "1.5truex"),
    ("{{ int(2.9) }}{{ int(-2.9) }}{{ int(options.count) }}{{ int('0') }}", "2-2-120"),
    ("{{ double(1) }}{{ double('-1.5e1') }}", "1.0-15.0"),
    (f"{{{{ json({OUTPUT}.nested) }}}}", '{"k":{"n":7}}'),
    ('{{ parseJson(\'{"b": [1, 2.5, null, true], "a": "x"}\') }}', {"b": [1, 2.5, None, True], "a": "x"}),
    (f"{{{{ keys({OUTPUT}.nested) }}}}", ["k"]),
    ("{{ b64encode('Gr\\u00fc\\u00dfe') }}{{ b64decode('R3LDvMOfZQ==') }}", "R3LDvMOfZQ==Grüße"),
    ("{{ sha256('') }}", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("{{ urlEncode('a b/~-._ü') }}", "a%20b%2F~-._%C3%BC"),
    ("{{ formatTime(time, '%Y-%m-%d %H:%M:%S.%f %j %%') }}", "2026-11-22 10:05:09.250000 326 %"),
    ("{{ formatTime('2024-02-29T00:00:00+00:00', '%j') }}", "060"),
    ("{{ options.tag.contains('igh') }}{{ options.tag.startsWith('x') }}{{ options.tag.endsWith('t') }}",
     "truefalsetrue"),
    ("{{ 'aÄz'.upperAscii() }}{{ 'AÄZ'.lowerAscii() }}", "AÄZaÄz"),
    ("{{ ' \\t x\\u00a0 '.trim() }}", "x\u00a0"),
    ("{{ options.list.replace(',', ';').split(';') }}", ["x", "y", "", "z"]),
    ("{{ 'h\\u00e9llo'.substring(1, 3) }}{{ 'abc'.substring(3) }}", "él"),
    (f"{{{{ {OUTPUT}.names.join('-') }}}}{{{{ [].join('-') }}}}", "b-a"),
    ("{{ 'it\\'s \\\"\\\\ \\n' }}", "it's \"\\ \n"),
    ("{{\n options\n .tag }}", "night"),
    ("{{ " + "(" * 32 + "1" + ")" * 32 + " }}", 1),
    ("{{ " + "!" * 4000 + "true }}", True),
    ("{{ " + "-" * 4000 + "1 }}", 1),
    ("{{ " + "+".join("1" * 2000) + " }}", 2000),
    ("{{ " + "false?1:" * 500 + "2 }}", 2),
    ("{{ '" + "x" * 4092 + "' }}", "x" * 4092),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text[:60] for text, _ in VALUES])
def test_a_template_gives_a_value(text: str, value: Any) -> None:
    rendered = render(text, PARAMETERS)
    assert (type(rendered), rendered) == (type(value), value)


ERRORS: list[tuple[str, TemplateCode, int]] = [
    ("{{ options.tag", TemplateCode.SYNTAX, 1),
    ("ab{{ 'x }}", TemplateCode.SYNTAX, 6),
    ("{{ }}", TemplateCode.SYNTAX, 4),
    ("{{ .Object }}", TemplateCode.SYNTAX, 4),
    ("{{ options.tag | trim }}", TemplateCode.SYNTAX, 16),
    ("{{ 1 < 2 < 3 }}", TemplateCode.SYNTAX, 10),
    ("{{ 1 == 2 in [] }}", TemplateCode.SYNTAX, 11),
    ("{{ 2 * 3 }}", TemplateCode.SYNTAX, 6),
    ("{{ {'a': 1} }}", TemplateCode.SYNTAX, 4),
    ("{{ '\\q' }}", TemplateCode.SYNTAX, 5),
    ("{{ '\\ud800' }}", TemplateCode.SYNTAX, 5),
    ("{{ 9223372036854775808 }}", TemplateCode.SYNTAX, 4),
    ("{{ 1e999 }}", TemplateCode.SYNTAX, 4),
    ("{{ 1 2 }}", TemplateCode.SYNTAX, 6),
    ("{{ in }}", TemplateCode.SYNTAX, 4),
    ("{{ (1 }}", TemplateCode.SYNTAX, 7),
    ("{{ [1, ] }}", TemplateCode.SYNTAX, 8),
    ("{{ true ? 1 }}", TemplateCode.SYNTAX, 13),
    ("{{ options. }}", TemplateCode.SYNTAX, 13),
    ("{{ nope }}{{ 1 + }}", TemplateCode.SYNTAX, 18),
    ("{{ env.HOME }}", TemplateCode.NAME, 4),
    ("x{{ now() }}", TemplateCode.NAME, 5),
    ("{{ options.tag.length() }}", TemplateCode.NAME, 16),
    ("{{ size() }}", TemplateCode.NAME, 4),
    ("{{ 'a'.substring() }}", TemplateCode.NAME, 8),
    ("{{ default('x', 1) }}", TemplateCode.NAME, 4),
    ("{{ default(time, 1) }}", TemplateCode.NAME, 4),
    ("{{ has(options.tag.trim()) }}", TemplateCode.NAME, 4),
    ("{{ [options[nope.x]] }}", TemplateCode.NAME, 13),
    ("{{ " + "(" * 33 + "1" + ")" * 33 + " }}", TemplateCode.LIMIT, 37),
    ("{{ " + "true?" * 33 + "1" + ":1" * 33 + " }}", TemplateCode.LIMIT, 169),
    ("{{ '" + "x" * 4095 + "' }}", TemplateCode.LIMIT, 3),
    ("x" * (1 << 16) + "{{ 1 }}", TemplateCode.LIMIT, 1),
    ("{{ options.none }}", TemplateCode.MISSING, 12),
    ("{{ options.__class__ }}", TemplateCode.MISSING, 12),
    (f"{{{{ {OUTPUT}.none.x }}}}", TemplateCode.MISSING, 30),
    (f"{{{{ {OUTPUT}.names[-1] }}}}", TemplateCode.MISSING, 30),
    ("{{ item }}", TemplateCode.MISSING, 4),
    (f"{{{{ default({OUTPUT}.names[options.none], 1) }}}}", TemplateCode.MISSING, 47),
    ("{{ options.tag.x }}", TemplateCode.TYPE, 16),
    ("{{ default(options.tag.x, 1) }}", TemplateCode.TYPE, 24),
    (f"{{{{ {OUTPUT}.names['a'] }}}}", TemplateCode.TYPE, 30),
    (f"{{{{ {OUTPUT}.names[true] }}}}", TemplateCode.TYPE, 30),
    ("{{ options[1] }}", TemplateCode.TYPE, 11),
    ("{{ '10' < 9 }}", TemplateCode.TYPE, 9),
    ("{{ true < false }}", TemplateCode.TYPE, 9),
    ("{{ 'a' in 'abc' }}", TemplateCode.TYPE, 8),
    ("{{ 1 in object }}", TemplateCode.TYPE, 6),
    ("{{ true && 'x' }}", TemplateCode.TYPE, 12),
    ("{{ 1 ? 2 : 3 }}", TemplateCode.TYPE, 4),
    ("{{ !'x' }}", TemplateCode.TYPE, 4),
    ("{{ -true }}", TemplateCode.TYPE, 4),
    ("{{ 'a' + 1 }}", TemplateCode.TYPE, 8),
    ("{{ 1 + 1.5 }}", TemplateCode.TYPE, 6),
    ("{{ 'a' - 'a' }}", TemplateCode.TYPE, 8),
    ("{{ true + true }}", TemplateCode.TYPE, 9),
    ("x{{ null }}", TemplateCode.TYPE, 5),
    ("x{{ [1] }}", TemplateCode.TYPE, 5),
    ("{{ string(null) }}", TemplateCode.TYPE, 4),
    ("{{ size(1) }}", TemplateCode.TYPE, 4),
    ("{{ sha256(1) }}", TemplateCode.TYPE, 4),
    ("{{ int(true) }}", TemplateCode.TYPE, 4),
    ("{{ 'a'.substring('b') }}", TemplateCode.TYPE, 8),
    ("{{ [1].join('-') }}", TemplateCode.TYPE, 8),
    ("{{ int(options.tag) }}", TemplateCode.VALUE, 4),
    ("{{ int('1.5') }}", TemplateCode.VALUE, 4),
    ("{{ double('nan') }}", TemplateCode.VALUE, 4),
    ("{{ parseJson('{') }}", TemplateCode.VALUE, 4),
    ("{{ parseJson('NaN') }}", TemplateCode.VALUE, 4),
    ("{{ b64decode('R3L') }}", TemplateCode.VALUE, 4),
    ("{{ b64decode('/w==') }}", TemplateCode.VALUE, 4),
    ("{{ formatTime('yesterday', '%Y') }}", TemplateCode.VALUE, 4),
    ("{{ formatTime('2026-02-30T00:00:00Z', '%Y') }}", TemplateCode.VALUE, 4),
    ("{{ formatTime('2026-02-03T00:00:00+01:00', '%Y') }}", TemplateCode.VALUE, 4),
    ("{{ formatTime(time, '%q') }}", TemplateCode.VALUE, 4),
    ("{{ formatTime(time, '%') }}", TemplateCode.VALUE, 4),
    ("{{ 'a'.replace('', 'b') }}", TemplateCode.VALUE, 8),
    ("{{ 'a'.split('') }}", TemplateCode.VALUE, 8),
    ("{{ 'abc'.substring(4) }}", TemplateCode.VALUE, 10),
    ("{{ 'abc'.substring(2, 1) }}", TemplateCode.VALUE, 10),
    ("{{ 'abc'.substring(-1) }}", TemplateCode.VALUE, 10),
    ("{{ 9223372036854775807 + 1 }}", TemplateCode.RANGE, 24),
    (f"{{{{ -{OUTPUT}.smallest }}}}", TemplateCode.RANGE, 4),
    ("{{ 1e308 + 1e308 }}", TemplateCode.RANGE, 10),
    ("{{ int(1e300) }}", TemplateCode.RANGE, 4),
    ("{{ int('" + "9" * 4000 + "') }}", TemplateCode.RANGE, 4),
    ("{{ parseJson('9223372036854775808') }}", TemplateCode.RANGE, 4),
    ("{{ parseJson('1e999') }}", TemplateCode.RANGE, 4),
    (f"x{{{{ {OUTPUT}.long }}}}", TemplateCode.LIMIT, 1),
    (f"{{{{ {OUTPUT}.long + 'x' }}}}", TemplateCode.LIMIT, 30),
    (f"{{{{ {OUTPUT}.long.replace('x', 'yy') }}}}", TemplateCode.LIMIT, 30),
    (f"{{{{ json({OUTPUT}.long) }}}}", TemplateCode.LIMIT, 4),
    (f"{{{{ {OUTPUT}.long.split('x') + ['x'] }}}}", TemplateCode.LIMIT, 41),
]


@pytest.mark.parametrize(("text", "code", "column"), ERRORS, ids=[text[:60] for text, _, _ in ERRORS])
def test_what_is_wrong_has_a_code_and_a_place(text: str, code: TemplateCode, column: int) -> None:
    with pytest.raises(TemplateError) as caught:
        render(text, PARAMETERS)
    assert (caught.value.code, caught.value.column) == (code, column)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ optoins.tag }}", "there is no root 'optoins'; did you mean options?"),
        ("{{ defualt(options.tag, 1) }}", "there is no function 'defualt'; did you mean default?"),
        ("{{ options.tag.triim() }}", "there is no method 'triim'; did you mean trim?"),
        ("{{ 'a'.substring(1, 2, 3) }}", "substring has 1 or 2 arguments, and 3 stand here"),
        ("{{ 1 < 2 < 3 }}", "expected && or || between two comparisons, and '<' stands here"),
        ("{{ (1 }}", "expected ')', and the end stands here"),
        ("{{ options.tag", '{{ without }}; literal braces are {{ "{{" }}'),
        ("{{ 'abc }}", "the text 'abc }} has no end"),
        ("{{ 2 * 3 }}", "'*' stands in no expression"),
        ("{{ 'a' + 1 }}", "+ needs two ints, two doubles, two texts or two lists, and these are a text and an int"),
        ("{{ options.none }}", "there is no 'none'"),
        ("{{ options['none'] }}", "there is no 'none'"),
        ("{{ options[options.tag] }}", "there is no such key"),
        ("{{ [1][7] }}", "there is no element 7; the list has 1, counted from 0"),
        ("{{ [1][size(options.tag)] }}", "there is no such element; the list has 1, counted from 0"),
        ("x{{ [1] }}", "a list is no text; write json(…), or join for a list of texts"),
    ],
)
def test_what_is_wrong_is_said(text: str, reason: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(text, PARAMETERS)
    assert caught.value.text == reason


def test_texts_in_lists_and_maps_are_rendered_and_keys_are_not() -> None:
    value = {"{{ x": ["{{ options.tag }}", 1, None, True], "b": {"c": "n={{ 1 }}"}}
    assert render(value, PARAMETERS) == {"{{ x": ["night", 1, None, True], "b": {"c": "n=1"}}


def test_an_error_names_the_place_of_its_text() -> None:
    with pytest.raises(TemplateError) as caught:
        render({"a": ["x", {"b": "{{ options.none }}"}]}, PARAMETERS)
    assert caught.value.pointer == ("a", 1, "b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no expression", []),
        ("{{ time }}", [Reference("time", (), False, 4)]),
        (
            "{{ phases.a.output['b'][0] }}",
            [Reference("phases", ("a", "output", "b", 0), False, 4)],
        ),
        (
            "{{ default(phases[options.n].output, item) }}",
            [
                Reference("phases", (None, "output"), True, 12),
                Reference("options", ("n",), False, 19),
                Reference("item", (), False, 38),
            ],
        ),
        (
            "{{ has(failure.phase) ? options.a.trim() : 'x' + [run.id].join(options.b) }}",
            [
                Reference("failure", ("phase",), True, 8),
                Reference("options", ("a",), False, 25),
                Reference("run", ("id",), False, 51),
                Reference("options", ("b",), False, 64),
            ],
        ),
        ("{{ object.name }}/{{ !stack.x && 1 < -item }}", [
            Reference("object", ("name",), False, 4),
            Reference("stack", ("x",), False, 23),
            Reference("item", (), False, 39),
        ]),
        ("{{ phases[true].x }}", [Reference("phases", (None, "x"), False, 4)]),
    ],
)  # fmt: skip
def test_what_a_template_reads(text: str, expected: list[Reference]) -> None:
    assert references(parse_template(text)) == expected


@pytest.mark.parametrize(
    ("text", "is_literal", "is_single"),
    [("", True, False), ("x", True, False), ("{{ 1 }}", False, True), ("{{ 1 }} ", False, False)],
)
def test_what_a_template_is(text: str, is_literal: bool, is_single: bool) -> None:
    template = parse_template(text)
    assert (template.is_literal, template.is_single_expression) == (is_literal, is_single)
