"""The README and the docs are correct: commands run, examples parse, and the targets of links exist."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest
import yaml

from services.access.token_file import home_token
from services.actions.blueprints import ACTION_FIELDS, PHASE_FIELDS
from services.actions.life import ActionSetState
from services.actions.phase_reason import PhaseReason
from services.actions.signatures import FUNCTIONS
from services.core.errors import RequestInvalid
from services.gateway.settings import load_gateway
from services.kinds.registry import KINDS
from services.settings import PORTS
from stack_svc.rules.repository_addresses import checked_address
from tests import needs
from tests.apply.packages import an_endpoint
from tests.cli.command import environment, parts
from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.drivers.client import delete, update
from tests.gateway.gateway import gateway
from tests.ports import home_at_ports

BIN = Path(sys.executable).parent
ACTIONS = (ROOT / "docs" / "actions.md").read_text()
BLUEPRINTS = (ROOT / "docs" / "blueprints.md").read_text()
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


async def run(script: str, env: Mapping[str, str]) -> str:
    """Run a block as a reader would; returns its output."""
    script = script.replace(". .venv/bin/activate", ":")
    process = await asyncio.create_subprocess_exec(
        "bash", "-euc", script, cwd=ROOT, env=dict(env) | {"PATH": f"{BIN}{os.pathsep}{env['PATH']}"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


def readme_block(word: str) -> str:
    """The one block of the README that has *word*."""
    (found,) = [block for block in blocks(ROOT / "README.md", "sh") if word in block]
    return found


@pytest.mark.slow
async def test_quickstart_runs_twice(tmp_path: Path) -> None:
    for _ in range(2):
        output = await run(f"examples/quickstart.sh {BIN}", environment(tmp_path))
        assert "Plan: 6 to create, 5 label(s) to attach." in output
        assert '"create_time"' in output
        assert "Done: nothing to do, nothing written." in output


@pytest.mark.slow
async def test_the_demonstration_shows_that_an_apply_survives_its_applier(tmp_path: Path) -> None:
    output = await run("python examples/demo_crash.py", environment(tmp_path))
    before, _, after = output.partition("kill -9")
    assert "are created" in before
    assert "succeeded" in after
    assert "Done: nothing to do, nothing written." in after


@pytest.mark.slow
async def test_the_demonstration_shows_that_a_backup_and_a_restore_survive_their_applier(tmp_path: Path) -> None:
    output = await run("python examples/demo_backup.py", environment(tmp_path))
    assert output.count("Update Complete") == 3
    assert output.count("its applier ended while it ran") == 3
    before, _, after = output.partition("the backup is deleted")
    assert "Plan: nothing to do." in before
    assert "the snapshot of artifact 'stackBackup' was deleted" in after


@pytest.mark.slow
@needs.program("grpcurl")
@needs.program("curl")
async def test_the_page_on_actions_leads_from_nothing_to_a_restored_stack(tmp_path: Path) -> None:
    page = ROOT / "docs" / "actions.md"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    settings = load_gateway({"PKGER_HTTP_ADDRESS": "127.0.0.1:0"})
    async with (
        home_at_ports(tmp_path) as home,
        gateway(settings, home.services, home_token(tmp_path)) as address,
    ):
        env = environment(tmp_path, home.services.addresses)
        # In one shell: later blocks use variables of earlier ones.
        script = "\necho @@@\n".join(blocks(page, "sh")).replace("127.0.0.1:8086", address)
        shown = (await run(f"cd {tmp_path}\n{home.at_ports(script)}", env)).split("@@@\n")
    backup, lost, restored, made_again, deleted, created, read, over_http = shown
    [events] = blocks(page, "text")
    assert events in re.sub(r"\d{4}(-\d\d){2}T[\d:]{8}Z", "TIME", backup)
    assert "Done: 5 deleted" in lost
    assert "may delete resources of stack fleet" in restored
    assert restored.endswith("Plan: nothing to do.\n")
    assert made_again.endswith("Plan: nothing to do.\n")
    assert "(deleted by delete-before-" in deleted
    assert deleted.endswith("choose another backup (`pkger snapshots list`)\n")
    assert '"operation_id"' in created
    assert '"name": "nightly"' in read
    assert over_http.count('"name":"nightly"') == 2


@pytest.mark.parametrize(
    "target",
    [
        "quickstart",
        "test",
        "test-slow",
        "test-all",
        "lint",
        "contracts",
        "bench",
        "gen",
        "help",
        "demo-crash",
        "demo-backup",
        "test-faults",
        "docs",
        "reference",
    ],
)
def test_make_has_the_target(target: str) -> None:
    subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.slow
async def test_the_commands_of_the_readme_run_with_nothing_running(tmp_path: Path) -> None:
    output = await run(readme_block("pkger plan"), environment(tmp_path))
    assert output.count("Plan: 6 to create") == 2
    assert '"name": "fleet"' in output
    assert "Done: 6 deleted, 5 label(s) detached." in output


@pytest.mark.slow
@needs.program("grpcurl")
async def test_the_grpcurl_commands_of_the_readme_run(tmp_path: Path) -> None:
    async with home_at_ports(tmp_path) as home:
        output = await run(home.at_ports(readme_block("grpcurl")), environment(tmp_path))
        stack = await home.services.record("demo")
    assert "pkger.planner.v1.PlannerService" in output
    assert "CreatePlanRequest is a message" in output
    assert '"noChange": true' not in output
    assert [entry.key.name for entry in stack.resources] == ["hello"]


def test_the_readme_knows_the_ports() -> None:
    rows = re.findall(r"^\| (\w+) \| (\d+|socket) \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert dict(rows) == {name: "socket" if name == "platform" else str(port) for name, port in PORTS.items()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_targets_of_links_exist(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)", prose):
        # The site makes a page of each package of the contracts.
        made = re.fullmatch(r"reference/grpc/(pkger\.\w+\.v1)\.md", target)
        path = ROOT / "protos" / made[1].replace(".", "/") if made else page.parent / target
        assert "://" in target or path.exists(), target


def package_examples() -> list[str]:
    """The examples of the page on packages; the last block is no package."""
    return blocks(ROOT / "docs" / "packages.md", "yaml")[:-1]


async def test_the_example_of_the_package_format_is_a_valid_package(services: Cluster) -> None:
    example, *_ = package_examples()
    plan = await services.plan(example)
    assert [(diff.key.kind, diff.key.name) for diff in plan.resource_diffs] == [
        ("Bucket", "readings"),
        ("Label", "sensors"),
    ]


@pytest.mark.slow
async def test_the_examples_of_the_page_on_packages_have_every_kind(tmp_path: Path) -> None:
    (tmp_path / "all.yml").write_text("---\n".join(package_examples()))
    found = parts(await run(f"pkger validate -f {tmp_path}/all.yml -o json", environment(tmp_path)))
    assert (found["header"]["violation_count"], found["header"]["warning_count"]) == (0, 0)
    kinds = {document["kind"] for example in package_examples() for document in yaml.safe_load_all(example)}
    assert kinds == set(KINDS)


@pytest.mark.slow
async def test_the_readme_shows_the_plan_of_its_package(services: Cluster, tmp_path: Path) -> None:
    (package,) = blocks(ROOT / "README.md", "yaml")
    (plan,) = blocks(ROOT / "README.md", "text")
    (tmp_path / "readings.yml").write_text(package)
    command = f"cd {tmp_path}; pkger plan -f readings.yml --stack sensors"
    assert await run(command, environment(tmp_path, services.addresses)) == plan


@pytest.mark.slow
async def test_editors_get_a_schema(services: Cluster, tmp_path: Path) -> None:
    (command,) = [block for block in blocks(ROOT / "docs" / "packages.md", "sh") if "pkger schema" in block]
    await run(f"cd {tmp_path}; {command}", environment(tmp_path, services.addresses))
    validator = jsonschema.Draft202012Validator(json.loads((tmp_path / "package.schema.json").read_text()))
    for example in package_examples():
        for document in yaml.safe_load_all(example):
            validator.validate(document)


@pytest.mark.slow
async def test_the_command_of_the_page_writes_a_secret(services: Cluster, tmp_path: Path) -> None:
    (command,) = [block for block in blocks(ROOT / "docs" / "packages.md", "sh") if "--secret" in block]
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump(an_endpoint("Slack", "chat", "chat")))
    env = environment(tmp_path, services.addresses) | {"SLACK_TOKEN": "canary-8a1f"}
    assert "canary-8a1f" not in await run(f"cd {tmp_path}; {command}", env)
    assert await services.secret_keys() == ["slack-token"]


@pytest.mark.slow
async def test_the_commands_about_plans_and_operations_run(tmp_path: Path, services: Cluster) -> None:
    script = "\n".join(blocks(ROOT / "docs" / "operations.md", "sh")).replace("plan.json", str(tmp_path / "plan.json"))
    output = await run(script, environment(tmp_path, services.addresses))
    assert "Plan: 6 to create, 5 label(s) to attach." in output
    assert output.count("succeeded") == 2
    assert len((await services.record("fleet")).resources) == 6


@pytest.mark.slow
async def test_the_commands_about_exports_run(tmp_path: Path, services: Cluster) -> None:
    script = "\n".join(blocks(ROOT / "docs" / "export.md", "sh")).replace("fleet.yml", str(tmp_path / "fleet.yml"))
    script = script.replace(f"examples/{tmp_path}/", "examples/")
    output = await run(script, environment(tmp_path, services.addresses))
    assert "Exported 6 objects to " in output
    assert "Plan: nothing to do." in output
    assert "name: Fleet overview, new" in output
    assert len(await services.resources("copy")) == len(await services.resources()) == 6


@pytest.mark.slow
async def test_the_tour_leads_from_nothing_to_a_rollback(tmp_path: Path) -> None:
    """Each output that it shows is the end of the output of the commands before it, but for ids and times."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    install, *steps = re.findall(
        r"^```(sh|text)\n(.*?)^```", (ROOT / "docs" / "tour.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert install == ("sh", "make setup\n. .venv/bin/activate\n")
    env, output = environment(tmp_path / "home"), ""
    for language, text in steps:
        if language == "sh":
            output = await run(f"cd {tmp_path}\n{text}", env)
        else:
            assert without_ids_and_times(output).endswith(without_ids_and_times(text)), output
    assert [each.name for each in tmp_path.iterdir() if "tour" in each.name] == []


def without_ids_and_times(text: str) -> str:
    """Output of commands without the parts that differ between runs."""
    return re.sub(r"\b[0-9a-f]{16}\b", "ID", re.sub(r"\d{4}(-\d\d){2}T[\d:]{8}Z", "TIME", text))


async def test_the_commands_of_the_page_on_blueprints_store_one(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    stored, deleted = [await run(block, env) for block in blocks(ROOT / "docs" / "blueprints.md", "sh")]
    assert "Definitions are valid: 1 Blueprint." in stored
    assert "Blueprint stack-backup is stored" in stored
    assert "Blueprint stack-backup is deleted" in deleted


def test_the_page_on_actions_has_every_function() -> None:
    rows = re.findall(r"^\| (\w+) \| (.*) \| (.*) \| (\w+) \| (\w+) \|$", ACTIONS, re.MULTILINE)
    assert {row[0]: row[1:] for row in rows} == {
        name: (
            ", ".join(f"**{each.name}**" if each.required else each.name for each in signature.arguments),
            ", ".join(signature.outputs),
            signature.effect.value,
            signature.recovery.value,
        )
        for name in FUNCTIONS.names
        if (signature := FUNCTIONS.find(name))
    }


def test_the_page_on_actions_has_every_state_and_reason() -> None:
    cells = set(re.findall(r"^\| (\w+) \|", ACTIONS, re.MULTILINE))
    assert cells >= {state.value.lower() for state in ActionSetState} | {reason.value for reason in PhaseReason}


def test_the_page_on_blueprints_has_every_field() -> None:
    fields = set(re.findall(r"`(\w+)`", BLUEPRINTS))
    assert fields >= {*ACTION_FIELDS, *PHASE_FIELDS}


@pytest.mark.slow
async def test_the_commands_of_the_page_on_policies_roll_back(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    applied, back, policy, explained = [await run(block, env) for block in blocks(ROOT / "docs" / "policies.md", "sh")]
    assert "- Bucket fleet-raw" in applied
    assert "rollback of 1" in back
    assert "protect: true" in policy
    assert "protect            true          overrides[0]" in explained


@pytest.mark.slow
async def test_the_page_on_dependencies_shows_a_manifest_and_a_repository(services: Cluster, tmp_path: Path) -> None:
    page, env = ROOT / "docs" / "dependencies.md", environment(tmp_path, services.addresses)
    shown = [await run(f"cd {tmp_path}\n{block}", env) for block in blocks(page, "sh")]
    valid, wrong, plan, other, index, edited, _, check, digest, read, resolved, conflict, _, listed, changed = shown
    mistake, warning, written, refused, found, order, reasons, table = blocks(page, "text")
    assert "The package team-dashboards 1.4.0+2 is valid: 1 Label." in valid
    assert mistake in wrong
    assert "did you mean 'platform'?" in wrong
    assert "2 violations, 1 warning" in wrong
    assert warning in plan
    assert "The package team-dashboards 1.4.0+2 is valid: 1 Bucket." in other
    assert index == written
    assert edited.startswith(refused)
    assert check == "2 packages, 2 versions: the index files are up to date\n"
    assert digest.split()[0] in (tmp_path / "packages" / "base-labels" / "versions.yaml").read_text()
    assert found in read
    assert "objects     Bucket:web-requests" in read
    assert resolved == order
    assert conflict.endswith(reasons)
    assert listed.endswith(table)
    assert "state    disabled" in changed
    assert changed.endswith("repository lab is removed\n")


@pytest.mark.slow
async def test_the_page_on_installing_shows_what_the_commands_print(services: Cluster, tmp_path: Path) -> None:
    page, env = ROOT / "docs" / "installing.md", environment(tmp_path, services.addresses)
    shown = [await run(f"cd {tmp_path}\n{block}", env) for block in blocks(page, "sh")]
    _, installed, explained, conflict, updated, pinned, removed, back, folder = shown
    plan, explanations, reasons, packages, edit = blocks(page, "text")
    assert installed.startswith(plan)
    assert "Done: 2 created, 1 label(s) attached." in installed
    assert explained == explanations
    assert conflict == reasons
    assert "^ base-labels 1.2.0 -> 1.3.0" in updated
    assert updated.endswith("Plan: nothing to do.\n")
    assert pinned.endswith(packages)
    assert "conflict: base-labels cannot be uninstalled: " in removed
    assert removed.count("- team-dashboards 1.4.0\n") == 1
    assert "+ team-dashboards 1.4.0 from own" in back
    assert edit in folder


def test_the_page_on_dependencies_says_which_addresses_are_refused() -> None:
    section = (ROOT / "docs" / "dependencies.md").read_text().split("\n| no address |")[1]
    rows = re.findall(r"^\| (`[^|]*) \| [^|]* \| ([^|]*) \|$", section, re.MULTILINE)
    assert len(rows) >= 5
    for faulty, remedy in rows:
        for address in re.findall("`(.*?)`", faulty):
            with pytest.raises(RequestInvalid):
                checked_address(address)
        [address] = re.findall("`(.*?)`", remedy)
        checked_address(address)


@pytest.mark.slow
async def test_the_page_on_drift_shows_the_edits_of_a_person(tmp_path: Path, services: Cluster) -> None:
    page, env = ROOT / "docs" / "drift.md", environment(tmp_path, services.addresses)
    apply, look, detailed, again = blocks(page, "sh")
    assert "Done:" in await run(apply, env)
    found = await services.resources()
    [bucket] = [each for each in found if each.kind == "Bucket" and each.display_name == "fleet"]
    [variable] = [each for each in found if each.kind == "Variable"]
    changed = {**json.loads(bucket.spec_json), "description": "who cares"}
    await services.mutate(update("Bucket", bucket.id, changed), delete("Variable", variable.id))
    (shown,) = blocks(page, "text")
    assert await run(look, env) == shown
    assert await run(detailed, env) == shown
    assert (await run(again, env)).endswith("No drift: 6 in sync.\n")


@pytest.mark.slow
async def test_the_commands_of_the_page_on_the_command_line_run(tmp_path: Path) -> None:
    script = "\n".join(blocks(ROOT / "docs" / "cli.md", "sh")).replace("fleet.plan", str(tmp_path / "fleet.plan"))
    output = await run(script, environment(tmp_path / "home"))
    assert "Done: 6 created" in output
    assert "nothing to do\n" in output
    assert "embedded/lab" in output


@pytest.mark.slow
async def test_the_commands_of_the_page_on_backups_restore_a_store(tmp_path: Path) -> None:
    """The backup has an unfinished operation and a stored plan that was not applied."""
    back_up, put_back, mark, resume, apply = blocks(ROOT / "docs" / "backup.md", "sh")
    env = environment(tmp_path) | {
        "PKGER_DATA": str(tmp_path / "data"),
        "BACKUP": str(tmp_path / "backup.db"),
    }
    await run("pkger plan -f examples/labels.json --stack other --save", env)
    # Its lease has not expired, so no applier resumes the operation before the backup.
    cut_off = f"PKGER_FAILPOINT=after_intent {apply.splitlines()[1]} --timeout 8 || true"
    assert "succeeded" not in await run(cut_off, env)
    await run(back_up, env)
    await run(put_back, env)
    marked = await run(mark, env)
    assert (marked.count("blocked: operation "), marked.count("stale: plan ")) == (1, 1)
    assert "nothing to mark" in await run(mark, env)
    resumed = await run(resume, env)
    assert "the store was restored from a backup" in resumed
    assert "pkger operations recover" in resumed
    assert await run("pkger operations list --unfinished -o json", env) == "[]\n"
    assert "Done:" in await run(apply, env)


def test_the_folders_of_the_architecture_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    folders = re.findall(r"^\| `(\w[\w/]*/)` \|", page, re.MULTILINE)
    assert len(folders) > 8
    for folder in folders:
        assert (ROOT / folder).is_dir(), folder
