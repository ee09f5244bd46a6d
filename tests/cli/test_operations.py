"""``pkger operations`` on an operation that is over."""

import json
from pathlib import Path

from tests.apply.packages import STEPS
from tests.cli.command import environment, pkger
from tests.cluster import Cluster


async def test_a_finished_operation_is_told_and_left_alone(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(STEPS[1])
    assert (await pkger("apply", "-f", str(file), "--stack", "s", env=env)).code == 0

    listed = await pkger("operations", "list", "-o", "json", env=env)
    name = json.loads(listed.out)[0]["name"]
    # Whole, also where there is no wide terminal: it is what the other commands are given.
    assert name in (await pkger("operations", "list", env=env)).out
    assert name not in (await pkger("operations", "list", "--unfinished", env=env)).out

    shown = await pkger("operations", "show", name.removeprefix("operations/"), env=env)
    assert "succeeded" in shown.out
    watched = await pkger("operations", "watch", name, env=env)
    assert (watched.code, watched.out.splitlines()[-1]) == (0, "succeeded")

    for word in ("cancel", "recover"):
        refused = await pkger("operations", word, name, env=env)
        assert refused.code != 0
        assert name in refused.err
        assert "Traceback" not in refused.err
