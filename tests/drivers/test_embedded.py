"""The embedded platform beyond the contract: its file, its ids, its order within a batch."""

import asyncio
import hashlib
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import sqlite_utils

from services.core import model
from services.core.errors import TokenStale
from services.drivers.embedded.driver import open_driver
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.embedded.sqlite.store import ZERO_ID
from services.drivers.mutation import Create, Done, PutSecret, Rejected
from services.drivers.wire import batch_from_pb
from services.engine.outcome import RejectionReason
from services.kinds.format import canonical
from services.kinds.format.canonical import spec_of
from services.kinds.format.references import Referable
from services.kinds.registry import KINDS
from services.platforms import Platform
from services.system import MachineIds, machine_clock
from tests.drivers.client import (
    CONTENT_REFUSED,
    NAME_TAKEN,
    NOT_FOUND,
    ORG,
    DriverClient,
    attach,
    create,
    delete,
    delete_secret,
    ends,
    put_secret,
    spec,
    update,
    wanted,
)
from tests.drivers.platforms import embedded_driver, sample

CANARY = "canary-8a1f"


class CountingJson:
    """orjson, which records the texts that it reads."""

    OPT_SORT_KEYS = orjson.OPT_SORT_KEYS
    dumps = staticmethod(orjson.dumps)

    def __init__(self, reads: list[str]) -> None:
        self._reads = reads

    def loads(self, text: str) -> Any:
        self._reads.append(text)
        return orjson.loads(text)


class Drawn(MachineIds):
    """Ids that a test chooses."""

    def __init__(self, ids: Iterator[str]) -> None:
        self._ids = ids

    def token(self, size: int) -> str:
        return next(self._ids)


@pytest.fixture
async def driver(tmp_path: Path) -> AsyncIterator[DriverClient]:
    async with embedded_driver(tmp_path) as client:
        yield client


async def test_resources_and_secrets_survive_a_restart(tmp_path: Path) -> None:
    sent = create("Bucket", sample("Bucket", "kept", ""), "bucket")
    async with embedded_driver(tmp_path) as driver:
        [bucket, label] = await driver.made(sent, create("Label", sample("Label", "l", ""), "label"))
        await driver.mutate(attach("Bucket", bucket.id, label.id))
        before = await driver.listing("Bucket", "Label")
    async with embedded_driver(tmp_path) as driver:
        assert await driver.listing("Bucket", "Label") == before
        assert await driver.made(sent) == before[:1]
        assert await driver.refusal(create("Bucket", sample("Bucket", "kept", ""), "other")) == NAME_TAKEN


async def test_an_old_fence_is_refused_after_a_restart(tmp_path: Path) -> None:
    async with embedded_driver(tmp_path) as driver:
        await driver.mutate(fence=("stack", 3))
    async with embedded_driver(tmp_path) as driver:
        with pytest.raises(TokenStale):
            await driver.mutate(create("Task", sample("Task", "late", ""), "late"), fence=("stack", 2))
        assert await driver.listing("Task") == []


async def test_a_label_of_white_space_has_a_name_as_any_other(driver: DriverClient) -> None:
    await driver.made(create("Label", sample("Label", "  ", ""), "1"))
    assert await driver.refusal(create("Label", sample("Label", "\t\t", ""), "2")) == NAME_TAKEN


def test_every_field_that_takes_a_secret_is_a_sensitive_path() -> None:
    """A new credential of a kind must not be written anywhere in plain text."""
    taken = {
        (kind, f"/{key}")
        for kind, definition in KINDS.items()
        for key, field in definition.fields.fields.items()
        if isinstance(field.shape, Referable) and field.shape.secret
    }
    assert taken == {(kind, path) for kind, traits in EMBEDDED.kinds.items() for path in traits.sensitive_paths}


def test_kinds_of_one_family_share_their_names_where_names_are_unique() -> None:
    unique = {kind: traits for kind, traits in EMBEDDED.kinds.items() if traits.unique_name("a")}
    for kind, traits in unique.items():
        scope = {other for other in unique if unique[other].scope == traits.scope}
        assert scope == {other for other in unique if KINDS[other].family == KINDS[kind].family}


async def test_the_file_has_a_salted_hash_of_a_secret_and_not_its_text(tmp_path: Path) -> None:
    values = {"one": CANARY, "same": CANARY, "other": "another"}
    async with embedded_driver(tmp_path) as driver:
        await driver.mutate(*(put_secret(key, "before") for key in values), put_secret("gone", CANARY))
        await driver.mutate(*(put_secret(key, value) for key, value in values.items()), delete_secret("gone"))
        kept = sqlite_utils.Database(tmp_path / "platform.db").table("secrets")
        hashes = {row["key"]: row["hash"] for row in kept.rows}
        assert not [path for path in tmp_path.rglob("*") if CANARY.encode() in path.read_bytes()]
    assert hashes.keys() == values.keys()
    assert hashes["one"] != hashes["same"]
    for key, value in values.items():
        salt, _, digest = hashes[key].partition(":")
        expected = hashlib.scrypt(value.encode(), salt=bytes.fromhex(salt), n=2**14, r=8, p=1)
        assert digest == expected.hex()


def test_the_repr_of_a_secret_hides_its_value() -> None:
    assert CANARY not in repr(PutSecret("k", CANARY))


def test_a_platform_without_secrets_refuses_them() -> None:
    bare = replace(EMBEDDED, holds_secrets=False)
    for mutation in (put_secret("k", CANARY), delete_secret("k")):
        [refused] = batch_from_pb([mutation], bare)
        assert isinstance(refused, Rejected)
        assert refused.reason is RejectionReason.KIND_UNSUPPORTED
        assert CANARY not in refused.message


async def test_two_servers_share_one_file(tmp_path: Path) -> None:
    async with embedded_driver(tmp_path) as one, embedded_driver(tmp_path) as two:
        batches = [
            (driver, [create("Variable", sample("Variable", f"v{n}", ""), f"{number} v{n}") for n in range(50)])
            for number, driver in enumerate([one, two] * 8)
        ]
        answers = await asyncio.gather(*(driver.mutate(*batch) for driver, batch in batches))
        assert sum(ends(results).count("done") for results in answers) == 50
        assert len(await one.listing("Variable")) == 50
        assert await one.listing("Variable") == await two.listing("Variable")
        await one.mutate(fence=("stack", 2))
        with pytest.raises(TokenStale):
            await two.mutate(fence=("stack", 1))


async def test_a_listing_shows_batches_whole(driver: DriverClient) -> None:
    """A list in chunks beside concurrent writes is one snapshot; otherwise a plan from it would be wrong."""
    size = 100
    made = await driver.made(*(create("Task", sample("Task", "0", ""), str(n)) for n in range(size)))

    async def write() -> None:
        for round_ in range(1, 11):
            await driver.mutate(*(update("Task", task.id, sample("Task", str(round_), "")) for task in made))

    async def read() -> None:
        for _ in range(20):
            assert len({spec(task)["name"] for task in await driver.listing("Task")}) == 1

    await asyncio.gather(write(), read())


@pytest.mark.parametrize("name", ["_monitoring", "_"])
async def test_bucket_names_of_the_system_are_refused(driver: DriverClient, name: str) -> None:
    [bucket] = await driver.made(create("Bucket", sample("Bucket", "mine", ""), "mine"))
    [created, renamed] = await driver.mutate(
        create("Bucket", sample("Bucket", name, ""), "system"), update("Bucket", bucket.id, sample("Bucket", name, ""))
    )
    foreseen = await driver.prepared(
        wanted(create("Bucket", sample("Bucket", name, ""))),
        wanted(update("Bucket", bucket.id, sample("Bucket", name, ""))),
    )
    assert [refused for _, refused in foreseen] == [created.rejected, renamed.rejected]
    for result in (created, renamed):
        assert result.rejected.reason == CONTENT_REFUSED
        assert "reserved" in result.rejected.message
        assert name in result.rejected.message
    await driver.made(create("Task", sample("Task", name, ""), "task"))


async def test_ids_are_16_lower_case_hex_digits(driver: DriverClient) -> None:
    made = await driver.made(*(create("Task", sample("Task", "t", ""), str(n)) for n in range(200)))
    ids = {resource.id for resource in made}
    assert len(ids) == 200
    assert all(re.fullmatch(r"[0-9a-f]{16}", id_) for id_ in ids)


async def test_an_id_that_is_zero_or_in_use_is_drawn_again(tmp_path: Path) -> None:
    ids = [f"{n:016x}" for n in range(5)]
    draws = iter([ids[1], ZERO_ID, ids[1], ids[1], ids[2], ids[2], ids[3]])
    driver = await open_driver(Platform("embedded", "embedded", ""), tmp_path, Drawn(draws), machine_clock)
    task = Create("Task", spec_of({"name": "t"}))
    try:
        results = [*await driver.mutate(ORG, None, [task]), *await driver.mutate(ORG, None, [task, task])]
    finally:
        await driver.close()
    assert [result.resource.id.id for result in results if isinstance(result, Done) and result.resource] == ids[1:4]


async def test_items_of_a_batch_run_in_order(driver: DriverClient) -> None:
    [old] = await driver.made(create("Bucket", sample("Bucket", "name", "old"), "old"))
    taken, _, new, refused = await driver.mutate(
        create("Bucket", sample("Bucket", "name", ""), "too early"),
        delete("Bucket", old.id),
        create("Bucket", sample("Bucket", "name", "new"), "new"),
        update("Bucket", old.id, sample("Bucket", "name", "")),
    )
    assert (taken.rejected.reason, refused.rejected.reason) == (NAME_TAKEN, NOT_FOUND)
    assert [bucket.id for bucket in await driver.listing("Bucket")] == [new.done.id]


async def test_names_can_be_swapped_within_a_batch(driver: DriverClient) -> None:
    one, two = await driver.made(
        create("Variable", sample("Variable", "one", ""), "1"), create("Variable", sample("Variable", "two", ""), "2")
    )
    await driver.made(
        update("Variable", one.id, sample("Variable", "aside", "")),
        update("Variable", two.id, sample("Variable", "one", "")),
        update("Variable", one.id, sample("Variable", "two", "")),
    )
    held = await driver.read(("Variable", one.id), ("Variable", two.id))
    assert [spec(resource)["name"] for resource in held] == ["two", "one"]
    assert await driver.refusal(create("Variable", sample("Variable", "one", ""), "3")) == NAME_TAKEN


async def test_a_label_deleted_in_a_batch_is_gone_for_the_rest_of_it(driver: DriverClient) -> None:
    task, label = await driver.made(
        create("Task", sample("Task", "t", ""), "t"), create("Label", sample("Label", "l", ""), "l")
    )
    attached, _, written, refused = await driver.mutate(
        attach("Task", task.id, label.id),
        delete("Label", label.id),
        update("Task", task.id, sample("Task", "t", "new")),
        attach("Task", task.id, label.id),
    )
    assert ends([attached, written, refused]) == ["done", "done", "rejected"]
    [left] = await driver.listing("Task")
    assert (spec(left), list(left.label_ids)) == (sample("Task", "t", "new"), [])


async def test_idempotency_keys_apply_within_their_organization_and_kind(driver: DriverClient) -> None:
    """A key that another organization used must not return its resource."""
    [task] = await driver.made(create("Task", sample("Task", "t", ""), "key"))
    [dashboard] = await driver.made(create("Dashboard", sample("Dashboard", "d", ""), "key"))
    [foreign] = await driver.made(create("Task", sample("Task", "t", "theirs"), "key"), org="theirs")
    assert len({task.id, dashboard.id, foreign.id}) == 3
    assert await driver.listing("Task") == [task]


async def test_a_rejected_create_does_not_use_its_key(driver: DriverClient) -> None:
    [bucket] = await driver.made(create("Bucket", sample("Bucket", "name", ""), "1"))
    again = create("Bucket", sample("Bucket", "name", ""), "2")
    assert await driver.refusal(again) == NAME_TAKEN
    await driver.mutate(delete("Bucket", bucket.id))
    await driver.made(again)


async def test_creates_without_a_key_make_one_resource_each(driver: DriverClient) -> None:
    made = await driver.made(*[create("Task", sample("Task", "t", ""))] * 3)
    assert len({resource.id for resource in made}) == 3


async def test_content_is_stored_as_it_was_sent(driver: DriverClient) -> None:
    """Services send canonical text; the platform checks that it is JSON, and does not rewrite it."""
    sent = create("Task", {}, "key")
    sent.create.spec_json = '{ "name": "t",\n "b": 1.0, "a": [ true, 1, "\\u00e9\\u0000" ] }'
    [result] = await driver.mutate(sent)
    [made] = await driver.listing("Task")
    assert (made.spec_json, made.display_name, result.done.observed_spec_json) == (sent.create.spec_json, "t", "")


async def test_content_nested_too_deeply_is_refused(driver: DriverClient) -> None:
    """It can be read, but not written as canonical text; the other items must be performed."""
    deep = create("Task", {}, "deep")
    deep.create.spec_json = '{"name":"t","deep":' + "[" * 500 + "]" * 500 + "}"
    refused, made = await driver.mutate(deep, create("Task", {"name": "t"}, "flat"))
    assert refused.rejected.reason == CONTENT_REFUSED
    assert [task.id for task in await driver.listing("Task")] == [made.done.id]


async def test_names_are_compared_as_a_whole(driver: DriverClient) -> None:
    """A NUL character ends a text in C; it must not end a name."""
    names = ["a", "a\0", "a\0b", "a ", "'", "%", "é", "e\u0301"]
    await driver.made(*(create("Bucket", sample("Bucket", name, ""), str(n)) for n, name in enumerate(names)))
    for name in names:
        assert await driver.refusal(create("Bucket", sample("Bucket", name, ""), f"again {name}")) == NAME_TAKEN
    assert sorted(bucket.display_name for bucket in await driver.listing("Bucket")) == sorted(names)


async def test_no_stored_spec_is_parsed(driver: DriverClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform holds many times the resources of one plan; listing and renaming parse none of them."""
    tasks = await driver.made(*(create("Task", sample("Task", f"t{n}", ""), str(n)) for n in range(20)))
    [label] = await driver.made(create("Label", sample("Label", "l", ""), "l"))
    reads: list[str] = []
    counting = CountingJson(reads)
    monkeypatch.setattr(canonical, "orjson", counting)
    monkeypatch.setattr(model, "read_object", counting.loads)
    assert len(await driver.listing("Task", "Label")) == 21
    assert await driver.read(("Task", tasks[0].id)) == [tasks[0]]
    results = await driver.mutate(
        create("Task", sample("Task", "t0", ""), "new"),
        update("Task", tasks[1].id, sample("Task", "renamed", "")),
        update("Label", label.id, sample("Label", "renamed", "")),
        attach("Task", tasks[1].id, label.id),
        delete("Task", tasks[2].id),
        delete("Label", label.id),
    )
    assert ends(results) == ["done"] * 6
    assert [orjson.loads(text)["name"] for text in reads] == ["t0", "renamed", "renamed"]


async def test_more_ids_than_one_statement_takes_can_be_read(driver: DriverClient) -> None:
    made = [
        resource
        for start in range(0, 2500, 500)
        for resource in await driver.made(*(create("Task", {"name": "t"}, str(start + n)) for n in range(500)))
    ]
    assert await driver.read(*(("Task", resource.id) for resource in made)) == made


async def test_a_rejection_says_what_is_wrong(driver: DriverClient) -> None:
    [label] = await driver.made(create("Label", sample("Label", "Infra", ""), "1"))
    results = await driver.mutate(
        create("Label", sample("Label", "INFRA", ""), "2"),
        update("Task", "00000000deadbeef", sample("Task", "t", "")),
        create("Spaceship", {"name": "x"}, "3"),
        attach("Label", label.id, label.id),
    )
    assert [result.rejected.message for result in results] == [
        f"another Label, {label.id}, has the name 'INFRA' (case and white space around a name do not count)",
        "there is no Task '00000000deadbeef'",
        f"platform 'embedded' has no kind 'Spaceship'; it has {', '.join(sorted(KINDS))}",
        "labels cannot be attached to a Label",
    ]


async def test_a_driver_returns_rejections_as_values(tmp_path: Path) -> None:
    driver = await open_driver(
        Platform("embedded", "embedded", ""), tmp_path / "deep" / "folder", MachineIds(), machine_clock
    )
    try:
        results = await driver.mutate(ORG, None, [Create("Bucket", spec_of({"name": "_system"}), "key")])
    finally:
        await driver.close()
    assert [type(result) for result in results] == [Rejected]


async def test_the_platform_runs_as_a_process_and_stops_on_a_signal(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "services.drivers",
        env=os.environ | {"PKGER_DATA": str(tmp_path), "PKGER_LISTEN": f"unix:{tmp_path}/socket"},
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    serving = orjson.loads(await process.stderr.readline())
    client = DriverClient(serving["addresses"][0])
    try:
        await client.made(create("Label", sample("Label", "l", ""), "key"))
    finally:
        await client.close()
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert process.returncode == 0, errors
    lines = [orjson.loads(line) for line in errors.splitlines()]
    [mutated] = [line for line in lines if line["message"] == "mutated"]
    assert (mutated["org"], mutated["create"], mutated["done"]) == (ORG, 1, 1)
    assert (tmp_path / "platform.db").exists()
