"""No output contains characters that a terminal interprets, hides or reorders."""

import io
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from services.cli.output.consoles import console
from services.cli.output.documents import text_document
from services.cli.output.escapes import escaped, one_line
from services.cli.output.tables import print_table
from tests.apply.packages import an_object, text
from tests.cli.command import environment, pkger
from tests.cluster import Cluster
from tests.samples import rare

LIKE_NOTHING = "\u034f\u115f\u1160\u200c\u200d\u2061\u2062\u2063\u2064\u3164\uffa0"
"""Characters that look like nothing, or like a space."""

HOSTILE = "a\x1b[31mred\x07\x9b\u202egnp.exe\u2066\u200b" + LIKE_NOTHING
FORBIDDEN = set("\x1b\x07\x9b\u202e\u2066\u200b\r\x00" + LIKE_NOTHING)

texts = st.text(st.characters(codec="utf-8") | st.sampled_from(sorted(FORBIDDEN)))


@given(texts)
def test_escaped_json_is_harmless_and_stays_json(hostile: str) -> None:
    assert not FORBIDDEN & set(escaped(hostile))
    assert "\n" not in one_line(hostile)
    for document in (hostile, {"a": [hostile]}):
        assert json.loads(text_document(document, "json")) == document
        assert not FORBIDDEN & set(text_document(document, "json", one_line=True))


@given(texts)
def test_yaml_output_is_harmless_and_stays_yaml(hostile: str) -> None:
    printed = text_document({"a": [hostile]}, "yaml")
    assert not FORBIDDEN & set(printed)
    assert yaml.safe_load(printed) == {"a": [hostile]}


@given(texts, texts)
def test_styled_text_is_escaped_too(one: str, other: str) -> None:
    out = console()
    out.file = io.StringIO()
    out.print(Text("  ").append(one, "red").append(" -> ").append(other, "green"))
    out.print(one)
    print_table(out, ("A", "B"), [(one, other)])
    assert not FORBIDDEN & set(out.file.getvalue())


def test_tables_fit_a_terminal_and_are_whole_elsewhere() -> None:
    out = console()
    out.file = io.StringIO()
    rows = [("x" * 100, "y" * 30, "short"), ("one", "two", "three")]
    print_table(out, ("A", "B", "C"), rows)
    assert "x" * 100 in out.file.getvalue()
    out.file = io.StringIO()
    print_table(out, ("A", "B", "C"), rows, width=80)
    lines = out.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count("x") for line in lines) == 100


@pytest.mark.parametrize("output", ["text", rare("json"), rare("yaml")])
async def test_hostile_names_do_no_harm(services: Cluster, tmp_path: Path, output: str) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / f"{HOSTILE}.json"
    labels = [an_object("Label", "l", HOSTILE), an_object("Label", "m", "x" * 3, description=HOSTILE)]
    file.write_text(text(*labels))
    broken = tmp_path / "broken.json"
    broken.write_text(text({**labels[0], "kind": HOSTILE}, an_object("Bucket", "b", "b", nonsense=HOSTILE)))
    for command in (
        ["plan", "-f", str(file), "--stack", "s", "--full"],
        ["apply", "-f", str(file), "--stack", "s"],
        ["stacks", "show", "s"],
        ["operations", "list"],
        ["validate", "-f", str(broken), "--env-ref", f"{HOSTILE}=x"],
        ["validate", "-f", str(tmp_path / HOSTILE)],
        ["plan", "-f", str(broken)],
        ["stacks", "show", HOSTILE],
        ["schema", HOSTILE],
        [HOSTILE],
    ):
        for ascii_only in ({}, {"PYTHONIOENCODING": "ascii"}):
            ended = await pkger(*command, "-o", output, env={**env, **ascii_only})
            assert not FORBIDDEN & set(ended.out + ended.err), command
            assert "Traceback" not in ended.err, command
