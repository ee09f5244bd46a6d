"""The stack service as a process: its writes outlive it."""

import signal
from pathlib import Path

import pytest
from pkger.journal.v1.journal_pb2 import StepRecord, StepState

from services.core.errors import RequestInvalid, ServiceUnavailable, StackLeased
from tests.stack.process import process
from tests.stack.service import Clock, entry, service_in_memory


@pytest.mark.slow
async def test_a_killed_service_loses_nothing_that_it_confirmed(tmp_path: Path) -> None:
    """The next process on the file has its records, leases and request ids."""
    async with process(tmp_path) as (server, client):
        made = await client.create("made", request_id="r-1")
        applied = await client.apply("applied", [entry("one", labels=["l"])], ["a.yml"])
        begun = await client.begin("applied", seconds=600)
        server.kill()
        await server.wait()

    async with process(tmp_path) as (server, client):
        assert await client.get(applied.id) == applied
        assert await client.create("made", request_id="r-1") == made
        with pytest.raises(StackLeased):
            await client.begin("applied", operation="op-2")
        assert (await client.record(begun, [entry("two")])).generation == 2
        server.send_signal(signal.SIGTERM)
        assert await server.wait() == 0


@pytest.mark.slow
async def test_a_service_that_is_killed_between_writes_has_every_write_that_it_confirmed(tmp_path: Path) -> None:
    begun = None
    for number in range(3):
        async with process(tmp_path) as (server, client):
            begun = begun or await client.begin("prod", operation="operation-1", steps=6, seconds=600)
            confirmed = [
                StepRecord(step=step, state=StepState.STEP_STATE_DONE) for step in (2 * number, 2 * number + 1)
            ]
            await client.advance(begun, confirmed, seqs=[number + 2], seal=number == 1, done_count=2 * number + 2)
            server.kill()
            await server.wait()
            # Writes that are sent now are not confirmed.
            with pytest.raises(ServiceUnavailable):
                await client.advance(begun, [StepRecord(step=0, state=StepState.STEP_STATE_UNDONE)], seqs=[number + 3])

    async with process(tmp_path) as (_, client):
        assert begun
        operation = await client.operation("operation-1")
        assert (operation.step_count, operation.done_count) == (6, 6)
        assert [event.seq for event in (await client.events("operation-1")).events] == [1, 2, 3, 4]
        with pytest.raises(RequestInvalid):
            await client.advance(begun, rollback=True)
        await client.record(begun, [entry("one")])


@pytest.mark.slow
async def test_processes_that_start_at_once_on_one_new_file_all_serve(tmp_path: Path) -> None:
    async with process(tmp_path) as (_, first), process(tmp_path) as (_, second):
        made = await first.create("prod")
        assert await second.get(made.id) == made


async def test_services_on_one_file_see_each_others_writes(tmp_path: Path) -> None:
    path, clock = tmp_path / "stack.db", Clock()
    async with service_in_memory(path, clock) as first, service_in_memory(path, clock) as second:
        begun = await first.begin("prod")
        stack = await second.record(begun, [entry("one")])
        assert await first.get_named("prod") == stack
