"""Values of secrets: whatever a function does with them, they are masked in all that is stored, told and logged."""

import base64
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from applier_svc.actions.call import Call, FunctionError
from services.core.errors import RequestInvalid
from services.rpc.log import JsonFormatter
from tests.action_sets.functions import Step
from tests.action_sets.test_backups import backup, follows
from tests.action_sets.test_children import operations
from tests.action_sets.test_restores import SECRETS, restoring
from tests.action_sets.world import COMPLETE, FAILED, World, action_set, blueprint, do, outputs
from tests.applier.faulty import ItemFault
from tests.apply.packages import EVERY_KIND, text

CANARY = 'canary-8a1f\N{SNOWMAN}"&/'

SPELLINGS = {
    "plain": CANARY,
    "JSON": json.dumps(CANARY),
    "URL": quote(CANARY, ""),
    "Base64": base64.b64encode(CANARY.encode()).decode(),
    "hex": CANARY.encode().hex(),
}


class Lines(logging.Handler):
    """What a process would write to its log."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += self.format(record) + "\n"


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, root = Lines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def returns(text: str) -> Step:
    async def step(call: Call) -> Mapping[str, Any]:
        return {"out": {"a": [text], text: 1}}

    return step


def emits(text: str) -> Step:
    async def step(call: Call) -> Mapping[str, Any]:
        await call.emit({"out": f"it is {text}"})
        return {}

    return step


def logs(text: str) -> Step:
    async def step(call: Call) -> Mapping[str, Any]:
        logging.getLogger("pkger.tests").warning("it is %s", text, extra={"more": [text]})
        return {}

    return step


def complains(text: str) -> Step:
    async def step(call: Call) -> Mapping[str, Any]:
        raise FunctionError(f"it is {text}")

    return step


def is_refused(text: str) -> Step:
    async def step(call: Call) -> Mapping[str, Any]:
        raise RequestInvalid("field", text)

    return step


def crashes(text: str) -> Step:
    async def step(call: Call) -> Mapping[str, Any]:
        raise ValueError(f"it is {text}")

    return step


WAYS = {each.__name__: each for each in (returns, emits, logs, complains, is_refused, crashes)}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("way", WAYS)
async def test_a_secret_is_masked_whatever_a_function_does_with_it(
    here: World, tmp_path: Path, lines: Lines, way: str, spelling: str
) -> None:
    text = SPELLINGS[spelling]
    here.script.does("leak", WAYS[way](text))
    definitions = blueprint(
        run={
            "secretNames": ["pg"],
            "phases": [do("leak", secret="{{ secrets.pg.password }}")],
            "deferPhase": do("after", value="{{ failure }}"),
            "outputArtifacts": {"made": {"keyValue": {"what": "{{ json(phases.leak.output) }}"}}},
        }
    )
    places = {"name": "run", "secrets": {"pg": {"password": {"given": True}}}}

    done = await here.run(definitions, action_set(places), secrets={"pg.password": CANARY})

    assert here.script.seen[0]["secret"] == CANARY
    assert done.state == (COMPLETE if way in ("returns", "emits", "logs") else FAILED)
    events = await here.events(done.operation_id)
    told = f"{done}{events}{here.script.seen[1:]}{outputs(done)}{lines.text}"
    assert "canary" not in told
    assert text not in told
    assert "[secret]" in told
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


@pytest.mark.parametrize("fault", [ItemFault.REJECT, ItemFault.LOSE_RESPONSE])
async def test_a_platform_that_repeats_secrets_does_not_tell_them(
    here: World, tmp_path: Path, lines: Lines, fault: ItemFault
) -> None:
    await here.services.apply(text(*EVERY_KIND), stack="fleet")
    name = await backup(here)
    keys = [key.replace("-", "_") for key in SECRETS]
    copy = {"kind": "Stack", "name": "copy", "target": {"org": "lab"}}
    places = {key: {"given": True} for key in keys}
    here.driver.fail(dict.fromkeys(range(4, 30), fault))
    here.driver.echoes = True

    done = await here.run(
        restoring(secrets=True),
        follows(name, "restore", overrides={"object": copy, "secrets": {"tokens": places}}),
        secrets={f"tokens.{key}": f"{CANARY} {key}" for key in keys},
    )

    assert "canary" in str(here.driver.sent)
    events = [await here.events(each.id) for each in await operations(here)]
    told = f"{done}{await operations(here)}{events}{lines.text}"
    assert "canary" not in told
    assert fault is not ItemFault.REJECT or (done.state, "[secret]" in told) == (FAILED, True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


@pytest.mark.parametrize(
    "given",
    [
        {"pg.password": "cny"},
        {"pg.password": CANARY * 10_000},
        {"pg.password": CANARY, "pg.other": CANARY},
        {"pg.password": CANARY, "other": CANARY},
        {"pg.passwd": CANARY},
        {},
    ],
    ids=["short", "long", "other key", "other name", "wrong key", "none"],
)
async def test_a_request_whose_secrets_are_refused_does_not_repeat_them(
    here: World, lines: Lines, given: Mapping[str, str]
) -> None:
    definitions = blueprint(run={"secretNames": ["pg"], "phases": [do("one", secret="{{ secrets.pg.password }}")]})
    places = {"name": "run", "secrets": {"pg": {"password": {"given": True}}}}

    with pytest.raises(RequestInvalid) as refused:
        await here.create(definitions, action_set(places), secrets=given)

    told = f"{refused.value}{refused.value.metadata}{lines.text}"
    assert "canary" not in told
    assert '"cny' not in told
    assert here.script.calls == []
