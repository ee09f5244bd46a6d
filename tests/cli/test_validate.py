"""``pkger validate`` and ``pkger schema``: their text output, as golden files, and their exit statuses."""

import subprocess
from pathlib import Path

import orjson
import pytest

from tests.cli.command import PKGER, environment, parts, pkger
from tests.cluster import Cluster
from tests.conftest import ROOT

GOLDEN = Path(__file__).with_name("golden")
CANARY = "canary-8a1f"
HEAD = "apiVersion: influxdata.com/v2alpha1\nkind: {}\nmetadata:\n  name: {}\n"

FILES = {
    "good.yml": HEAD.format("Label", "{envRef: {key: team}}") + "---\n" + HEAD.format("Bucket", "b1"),
    "hook.yml": HEAD.format("NotificationEndpointSlack", "hook")
    + "spec:\n  url: https://example.com\n  token: {secretRef: {key: slack}}\n",
    "bad.yml": HEAD.format("Bucket", "b1")
    + "spec:\n  name: x\n  retentionRules:\n    - {type: expire, everySeconds: 60}\n"
    + "  asociations: []\n  description: 007\n",
    "literal.yml": HEAD.format("NotificationEndpointSlack", "sl")
    + f"spec: {{url: 'https://hooks.slack.com/x', token: {CANARY}, colour: red}}\n---\n"
    + HEAD.format("NotificationEndpointPagerDuty", "pd")
    + "spec:\n  url: https://example.com\n  routingKey: {envRef: {key: route}}\n",
    "tabs.yml": HEAD.format("Label", "l1") + "spec:\n  # a line with\ttabs\n  'colour':\t'#fff'\n",
    "broken.yml": "kind: [Label\nspec: }",
    "broken.jsonnet": "local x = 5;\n[y]\n",
    "good.jsonnet": "local version = 'influxdata.com/v2alpha1';\n"
    + "[{apiVersion: version, kind: 'Bucket', metadata: {name: x}} for x in ['a1', 'b 2']]",
    "manifest.yml": "apiVersion: pkger/v1\nkind: Package\nmetadata: {name: team}\nspec:\n  version: 1.4.0+2\n"
    + "  requires: [{name: base, version: ^1.2}]\n---\n"
    + HEAD.format("Bucket", "b1")
    + "spec: {associations: [{kind: Label, name: base.env}]}\n",
    "faulty.yml": "apiVersion: pkger/v1\nkind: Package\nmetadata: {name: team}\nspec:\n  version: '1.2'\n"
    + "  requires: [{name: base, version: ~>1}, {name: team}]\n  requirs: []\n",
    "backup.yml": "apiVersion: pkger/v1\nkind: Blueprint\nmetadata: {name: backup}\nspec:\n  actions:\n    backup:\n"
    + "      phases:\n      - {name: export, func: ExportStack}\n",
    "drop.yml": "apiVersion: pkger/v1\nkind: Blueprint\nmetadata: {name: drop}\nspec:\n  actions:\n    drop:\n"
    + "      phases:\n      - {name: drop, func: DeleteSnapshot, args: {snapshot: '{{ options.id }}', keep: 1}}\n",
    "lib/below.json": '[{"kind": "Label", "apiVersion": "influxdata.com/v2alpha1", "metadata": {"name": "l2"}}]',
}
CASES = {
    "valid": ["good.yml", "hook.yml"],
    "invalid": ["bad.yml", "tabs.yml"],
    "invalid-json": ["bad.yml", "-o", "json"],
    "unreadable": ["good.yml", "broken.yml", "broken.jsonnet"],
    "jsonnet": ["good.jsonnet"],
    "manifest": ["manifest.yml"],
    "manifest-json": ["manifest.yml", "-o", "json"],
    "manifest-invalid": ["faulty.yml"],
    "folder": ["-R", "lib"],
    "definitions": ["backup.yml"],
    "definitions-invalid": ["backup.yml", "drop.yml"],
    "definitions-json": ["drop.yml", "-o", "json"],
    "definitions-and-package": ["backup.yml", "good.yml"],
    "literal": ["literal.yml"],
    "literal-json": ["literal.yml", "-o", "json"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("case", CASES)
async def test_the_text_of_findings(
    case: str, module_services: Cluster, folder: Path, request: pytest.FixtureRequest
) -> None:
    arguments = ["validate", *(str(folder / word) if (folder / word).exists() else word for word in CASES[case])]
    ended = await pkger(*arguments, env=environment(folder, module_services.addresses))
    transcript = f"$ pkger validate {' '.join(CASES[case])}\n{ended.out}{ended.err}exit status {ended.code}\n"
    transcript = transcript.replace(f"{folder}/", "")
    assert CANARY not in transcript
    golden = GOLDEN / f"validate-{case}.txt"
    if request.config.getoption("--update-golden"):
        golden.write_text(transcript)
    assert transcript == golden.read_text()


def test_the_installed_command_validates_standard_input_without_running_services(tmp_path: Path) -> None:
    text, env = FILES["tabs.yml"], environment(tmp_path)
    ended = subprocess.run([PKGER, "validate", "-"], input=text, env=env, capture_output=True, text=True, check=False)
    assert ended.stdout.startswith("stdin:7:3  Label  root[0].spec.colour\n")
    assert ended.stdout.endswith("The package is valid: 1 Label, 1 warning.\n")
    assert ended.returncode == 0


async def test_a_file_may_end_with_a_separator(tmp_path: Path) -> None:
    text = FILES["tabs.yml"] + "---\n"
    ended = await pkger("validate", "-f", "-", env=environment(tmp_path), typed=text.encode())
    assert ended.out.endswith("The package is valid: 1 Label, 1 warning.\n")
    assert ended.code == 0


async def test_values_of_the_environment_are_checked_too(module_services: Cluster, folder: Path) -> None:
    env = environment(folder, module_services.addresses)
    ended = await pkger("validate", str(folder / "good.yml"), "--env-ref", "team=x", env=env)
    assert "root[0].spec.name" in ended.out
    assert ended.code == 1


async def test_an_address_that_is_refused_is_a_finding(module_services: Cluster, folder: Path) -> None:
    env = environment(folder, module_services.addresses)
    ended = await pkger("validate", "http://127.0.0.1:1/a.yml", "-o", "json", env=env)
    [violation] = parts(ended.out)["violations"]["violations"]
    assert (violation["kind"], violation["location"]["source"]) == ("Source", "http://127.0.0.1:1/a.yml")
    assert "PKGER_ALLOW_PRIVATE_ADDRESSES" in violation["reason"]
    assert ended.code == 1


async def test_equal_warnings_are_one_line_in_all_that_is_printed(module_services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, module_services.addresses)
    names = []
    for number in range(3):
        file = tmp_path / f"{number}.yml"
        chart = "{kind: Markdown, name: note, width: 1, height: 1, colour: red}"
        file.write_text(HEAD.format("Dashboard", f"d{number}") + f"spec: {{charts: [{chart}, {chart}]}}\n")
        names += ["-f", str(file)]
    line = "there is no field 'colour', so it will be ignored; did you mean 'colors'?"
    for command, more in (("validate", " [unknown-field]"), ("plan", "")):
        shown = (await pkger(command, *names, env=env)).out
        assert shown.count(line) == 1
        assert f"{line}{more} (and at 5 other places)" in shown
    assert "6 warnings" in (await pkger("validate", *names, env=env)).out
    assert (await pkger("plan", *names, "--full", env=env)).out.count(line) == 6
    validated = parts((await pkger("validate", *names, "-o", "json", env=env)).out)["warnings"]["violations"]
    planned = parts((await pkger("plan", *names, "-o", "json", env=env)).out)["remarks"]
    assert len(validated) == 6
    assert planned["package_warnings"] == [{**warning, "fixes": []} for warning in validated]


async def test_schemas_are_printed(module_services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, module_services.addresses)
    asked: list[list[str]] = [["Task"], [], ["Rocket"], ["Check"]]
    one, all_kinds, none, family = [await pkger("schema", *words, env=env) for words in asked]
    assert orjson.loads(one.out)["title"] == "Task"
    assert "Telegraf" in orjson.loads(all_kinds.out)["$defs"]
    assert "there is no kind 'Rocket'; there are Bucket," in none.err
    assert "objects of kind Check are ignored; write one of CheckThreshold, CheckDeadman" in family.err
    assert (one.code, all_kinds.code, none.code, family.code) == (0, 0, 1, 1)


async def test_the_examples_are_valid_without_warnings(module_services: Cluster, tmp_path: Path) -> None:
    files = [str(ROOT / "examples" / name) for name in ("fleet.yml", "labels.json")]
    ended = await pkger("validate", *files, env=environment(tmp_path, module_services.addresses))
    assert ended.out == "The package is valid: 2 Bucket, 1 Dashboard, 1 Label, 1 Task, 1 Variable.\n"


MISWRITTEN = [
    f"  tokne: {CANARY}",
    f"  Token: {CANARY}",
    f"  token: [{CANARY}]",
    f"  token: {{secretRef: {CANARY}}}",
    f"  token: {{secretRef: {{kye: {CANARY}}}}}",
    f"  token: a\n  token: {CANARY}",
    f"  token: {CANARY}: x",
    f'  token: "{CANARY}" x',
    f"\ttoken: {CANARY}",
    f"  token: *{CANARY}",
    f"  password: 2020-01-01 # {CANARY}",
]


@pytest.mark.parametrize("text", MISWRITTEN)
async def test_a_credential_is_not_shown_however_it_is_miswritten(
    text: str, module_services: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "p.yml"
    head = (
        HEAD.format("NotificationEndpointHTTP", "hook") + "spec:\n  url: https://x.y\n  method: POST\n  type: bearer\n"
    )
    file.write_text(f"{head}{text}\n")
    env = environment(tmp_path, module_services.addresses)
    for arguments in (["validate", "-f", str(file)], ["plan", "-f", str(file)]):
        ended = await pkger(*arguments, env=env)
        assert ended.out + ended.err
        assert CANARY not in ended.out + ended.err
