"""``pkger operations`` with finished and with blocked operations."""

import json
from pathlib import Path

from applier_svc import failpoints
from tests.applier.faulty import ItemFault
from tests.applier.test_defects import Defect, left_behind
from tests.applier.world import world
from tests.apply.packages import STEPS, an_object, text
from tests.cli.command import environment, pkger
from tests.cluster import Cluster


async def test_a_finished_operation_is_listed_and_cannot_be_changed(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(STEPS[1])
    assert (await pkger("apply", "-f", str(file), "--stack", "s", env=env)).code == 0

    listed = await pkger("operations", "list", "-o", "json", env=env)
    name = json.loads(listed.out)[0]["id"]
    # Uncut, also in a narrow table: other commands take the name.
    assert name in (await pkger("operations", "list", env=env)).out
    assert name not in (await pkger("operations", "list", "--unfinished", env=env)).out

    shown = await pkger("operations", "show", name, env=env)
    assert "succeeded" in shown.out
    watched = await pkger("operations", "watch", name, env=env)
    assert (watched.code, watched.out.splitlines()[-1]) == (0, "succeeded")

    for word in ("cancel", "recover"):
        refused = await pkger("operations", word, name, env=env)
        assert refused.code != 0
        assert name in refused.err
        assert "Traceback" not in refused.err


async def test_a_blocked_operation_lists_decisions_and_ends_as_decided(tmp_path: Path) -> None:
    package = tmp_path / "package.json"
    package.write_text(text(an_object("Label", "red", "red"), an_object("Bucket", "reserved", "_system")))
    async with world(tmp_path) as faulty:
        # The platform rejects the bucket, and then the deletion of the label.
        faulty.driver.fail({2: ItemFault.REJECT}, lasting=True)
        env = environment(tmp_path, faulty.services.addresses)
        applied = await pkger("apply", "-f", str(package), "--stack", "s", env=env)
        assert applied.code != 0

        [listed] = json.loads((await pkger("operations", "list", "--unfinished", "-o", "json", env=env)).out)
        name = listed["id"]
        assert (listed["state"], listed["blocked_steps"]) == ("OPERATION_STATE_BLOCKED", [])
        shown = (await pkger("operations", "show", name, env=env)).out
        assert "step 0: undo of create Label red: scripted refusal" in shown
        assert "decisions: retry, skip, force, keep" in shown
        assert f"pkger operations recover {name} --step NUMBER=DECISION" in shown

        for decision, problem in {
            "0": "write NUMBER=DECISION",
            "x=skip": "write NUMBER=DECISION",
            "0=flee": "write NUMBER=DECISION",
            "1=skip": "step 1 is not blocked",
            "0=adopt:x": "does not fit step 0",
        }.items():
            refused = await pkger("operations", "recover", name, "--step", decision, env=env)
            assert refused.code != 0
            assert problem in refused.err
            assert "Traceback" not in refused.err

        recovered = await pkger("operations", "recover", name, "--step", "0=skip", env=env)
        assert "rolled back" in recovered.err
        assert "not sent: given up by a decision" in recovered.out
        [stack] = json.loads((await pkger("stacks", "list", "-o", "json", env=env)).out)
        assert stack["resource_count"] == 1
        assert json.loads((await pkger("operations", "list", "--unfinished", "-o", "json", env=env)).out) == []
        # The events after the one that it was blocked, and its end now.
        watched = await pkger("operations", "watch", name, env=env)
        assert (watched.code, "not sent: given up by a decision" in watched.out) == (5, True)
        assert watched.err.endswith("all changes are undone, except for steps that were given up\n")


async def test_an_operation_that_a_defect_blocks_shows_how_to_recover_it(tmp_path: Path) -> None:
    defect = Defect()
    failpoints.install(defect)
    try:
        async with world(tmp_path) as faulty:
            case, name = await left_behind(faulty, defect, "after_send")
            await case.settled()
            env, short = environment(tmp_path, faulty.services.addresses), name
            shown = (await pkger("operations", "show", short, env=env)).out
            assert defect.text in shown
            assert "decisions: retry\n" in shown
            assert f"`pkger operations recover {short}` retries; run it once the defect is fixed" in shown
            assert "--step" not in shown

            defect.place = None
            recovered = await pkger("operations", "recover", short, env=env)
            assert (recovered.code, recovered.err) == (0, "")
    finally:
        failpoints.install(failpoints.deadly(""))
