"""
A canary secret that must not be found in any file or answer, whichever way it comes to an action set and however its
appliers die (docs/actions.md, "Secrets").
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pkger.applier.v1 import action_pb2 as applier_action_pb2
from pkger.applier.v1.action_pb2_grpc import ActionServiceStub
from pkger.model.v1 import action_pb2
from pkger.stack.v1 import snapshot_pb2
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub

from services.settings import PORTS
from tests.action_sets.test_restores import SECRETS, restoring
from tests.action_sets.world import COMPLETE, FAILED, World, action_set, blueprint, do, states
from tests.applier.world import SUCCEEDED, Case, end
from tests.apply.packages import EVERY_KIND, text
from tests.crash.action_sets import Chain
from tests.crash.test_secrets import CANARY, all_answers, places
from tests.crash.world import Crashing, crashing
from tests.samples import rare

pytestmark = pytest.mark.slow

VALUES = {"env": f"{CANARY} in a variable", "file": f"{CANARY} in a file", "given": f"{CANARY} in a request"}
"""The value of each key of the secret ``all``, which says where it is."""

PLACES = {"all": {"env": {"env": "TOKEN"}, "file": {"file": "deep/token"}, "given": {"given": True}}}

GIVEN = {"all.given": VALUES["given"]}

ARGUMENTS = dict(zip(SECRETS, (f"{{{{ secrets.all.{key} }}}}" for key in VALUES), strict=True))
"""The secrets of a restore of ``EVERY_KIND``, one from each place."""

LOST = "secret all.given was only in the memory of an applier that ended; run again, with the secrets"


@pytest.fixture
async def world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Crashing]:
    """Services with a bad platform, and an applier that has the canary in its environment and in a file."""
    secrets = tmp_path_factory.mktemp("secrets")
    (secrets / "deep").mkdir()
    (secrets / "deep" / "token").write_text(VALUES["file"])
    modules = {"applier": "tests.action_applier", "platform": "tests.crash.echoing"}
    variables = {"PKGER_SECRET_TOKEN": VALUES["env"], "PKGER_SECRETS_DIR": str(secrets)}
    async with crashing(tmp_path, modules=modules, variables=variables) as running:
        yield running
        # Checked with open databases, too, as their write-ahead logs exist only then.
        assert places(tmp_path) == set()
    assert places(tmp_path) == set()
    assert {f"{name}.log" for name in PORTS} <= {path.name for path in tmp_path.iterdir()}


class Restores(Chain):
    """Restores of a backup into other organizations, with secrets from each place."""

    def request(self, part: str, **spec: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        definitions = restoring()
        restore = definitions["spec"]["actions"]["restore"]
        restore["secretNames"] = ["all"]
        restore["phases"][1]["args"]["secrets"] = ARGUMENTS
        if part == "backup":
            stack = {"kind": "Stack", "name": "s", "target": {"org": self.case.org}}
            return definitions, action_set({"name": "backup", "blueprint": "stack-backup", "object": stack}, name=part)
        copy = {"kind": "Stack", "name": "copy", "target": {"org": part}}
        source = {"actionSet": "backup", "action": "restore"}
        return definitions, action_set(**{"from": source, "overrides": {"object": copy, "secrets": PLACES}}, name=part)


class Tells(Chain):
    """Action sets whose phases do with a secret what their steps say."""

    def request(self, part: str, **spec: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        step, key = part.split("-")
        telling = do(step, func="Tell", secret=f"{{{{ secrets.all.{key} }}}}", retry={"attempts": 2, "backoff": "0s"})
        after = do("after", func="Note", value="{{ default(phases." + step + ".output, '') }}")
        made = {"keyValue": {"what": "{{ json(default(phases." + step + ".output, '')) }}"}}
        run = {"secretNames": ["all"], "phases": [telling], "deferPhase": after, "outputArtifacts": {"made": made}}
        return blueprint(run=run), action_set({"name": "run", "secrets": PLACES}, name=part)


async def everything(here: World, case: Case) -> str:
    """The answers of the services about action sets, snapshots and all else, as text."""
    stub, store = ActionServiceStub(here.applier.channel), here.services.peers["stack"]
    page = await here.applier.call(stub.ListActionSets, applier_action_pb2.ListActionSetsRequest(page_size=500))
    snapshots = await store.call(SnapshotServiceStub(store.channel).ListSnapshots, snapshot_pb2.ListSnapshotsRequest())
    assert page.action_sets
    whole = [str(await here.get(each.name)) for each in page.action_sets]
    return "\n".join([str(page), str(snapshots), *whole, await all_answers(case)])


async def backed_up(world: Crashing, folder: Path) -> Restores:
    """A backup of a stack that needs secrets; no applier runs."""
    chain = Restores(world, folder, await world.case_with(""))
    await world.applier()
    assert end(await chain.case.apply(text(*EVERY_KIND))).state == SUCCEEDED
    await world.processes.kill("applier")
    assert (await chain.run("backup")).state == COMPLETE
    await world.processes.kill("applier")
    return chain


@pytest.mark.parametrize(
    ("failpoints", "state"),
    [
        rare([], COMPLETE),
        # The phase that needs the secrets has not begun.
        rare(["after_start"], FAILED),
        rare(["after_phase_record"], FAILED),
        # Its operation has not begun, or not written the secrets.
        rare(["after_child_begin"], FAILED),
        rare(["after_intent"], FAILED),
        (["after_send"], FAILED),
        rare(["after_send", "after_claim"], FAILED),
        # It has written them all.
        rare(["after_intent:3"], COMPLETE),
        (["after_child_end"], COMPLETE),
        rare(["after_phase_record:2"], COMPLETE),
        rare(["after_child_end", "after_phase_effect"], COMPLETE),
    ],
    ids=str,
)
async def test_a_restore_with_secrets(
    world: Crashing, tmp_path: Path, failpoints: list[str], state: action_pb2.ActionSetState.ValueType
) -> None:
    chain = await backed_up(world, tmp_path)

    done = await chain.run("org-copy", failpoints, secrets=GIVEN)

    assert (done.state, chain.deaths) == (state, len(failpoints)), done.cause
    keys = await world.services.secret_keys("org-copy")
    if state == COMPLETE:
        assert keys == SECRETS
    else:
        [failure] = done.failures
        assert (failure.reason, failure.message) == (action_pb2.PHASE_REASON_INTERRUPTED, LOST)
        assert await world.services.resources("org-copy") == []
        assert "copy" not in await world.services.stack_names()
    told = await everything(chain.seen_by(), chain.case)
    assert "canary" not in told
    await world.processes.kill("applier")
    assert (await chain.run("org-again", secrets=GIVEN)).state == COMPLETE


@pytest.mark.parametrize("key", ["given", rare("env"), rare("file")])
@pytest.mark.parametrize("step", [rare("return"), rare("complain"), "crash"])
@pytest.mark.parametrize("failpoints", [rare([]), ["after_emit"], rare(["after_phase_effect"]), rare(["after_defer"])])
async def test_a_function_that_tells_its_secret(
    world: Crashing, tmp_path: Path, step: str, key: str, failpoints: list[str]
) -> None:
    chain = Tells(world, tmp_path, await world.case_with(""))
    await world.applier()
    assert end(await chain.case.apply(text())).state == SUCCEEDED
    await world.processes.kill("applier")

    done = await chain.run(f"{step}-{key}", failpoints, secrets=GIVEN)

    is_lost = key == "given" and failpoints and failpoints != ["after_defer"]
    assert done.state == (COMPLETE if step == "return" and not is_lost else FAILED), done.cause
    assert states(done)["run/after"] == "COMPLETE"
    told = await everything(chain.seen_by(), chain.case)
    assert "canary" not in told
    assert "[secret]" in told
