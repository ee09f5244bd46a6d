"""Values of parameters on the command line, where all values are texts."""

import json
from pathlib import Path

from tests.cli.command import environment, parts, pkger
from tests.cluster import Cluster
from tests.parser.parameter_values import SCRIPT, TEXTS, expected, key, task, written

GIVEN = {f"{value_type}-{number}": (value_type, value) for value_type in SCRIPT for number, value in enumerate(TEXTS)}
"""Type and value of a parameter, by the name of its task."""


async def test_texts_that_read_as_the_type_are_converted(module_services: Cluster, tmp_path: Path) -> None:
    usable = {name: expected(*given) for name, given in GIVEN.items() if expected(*given) is not None}
    ended = await pkger(*_arguments("plan", list(usable), tmp_path), "-o", "json", env=_env(module_services, tmp_path))
    assert (ended.code, ended.err) == (0, "")
    creates = [step["create"] for step in parts(ended.out)["steps"]["steps"]]
    assert {create["key"]["name"]: written(json.loads(create["spec_json"])["query"]) for create in creates} == usable


async def test_all_other_texts_are_refused_with_their_keys(module_services: Cluster, tmp_path: Path) -> None:
    unusable = [name for name, given in GIVEN.items() if expected(*given) is None]
    for verb in ("validate", "plan", "apply"):
        ended = await pkger(*_arguments(verb, unusable, tmp_path), env=_env(module_services, tmp_path))
        assert ended.code == 1
        output = ended.out if verb == "validate" else ended.err
        for number, name in enumerate(unusable):
            assert f"root[{number}].spec.params.x" in output
            assert repr(key(name)) in output
    assert await module_services.resources() == []


def _arguments(verb: str, names: list[str], folder: Path) -> list[str]:
    file = folder / "tasks.json"
    file.write_text(json.dumps([task(name, GIVEN[name][0]) for name in names]))
    values = [word for name in names for word in ("--env-ref", f"{key(name)}={GIVEN[name][1]}")]
    return [verb, *([] if verb == "validate" else ["-f"]), str(file), *values]


def _env(services: Cluster, folder: Path) -> dict[str, str]:
    return environment(folder, services.addresses)
