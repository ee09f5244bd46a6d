"""
Every gRPC status of every call of the command line is one sentence that names the service and the way out.

Each command runs once against the services, and its calls are recorded. Then it runs again for each of its calls, which
ends with a status that no pkger service returns: at once, and in a stream also after the first message.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.protobuf import descriptor_pool, message_factory

from services.cli.operations import follower
from services.rpc.channel import grpc_channel
from tests.apply.packages import BUCKET, LABEL, an_object, text
from tests.cli.command import Ended, environment, pkger
from tests.cli.replaying import Fault, Recorded, Replaying, is_stream, replaying
from tests.cluster import cluster
from tests.conftest import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="module")

CODES = [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK]

WATCH = "/pkger.applier.v1.ApplierService/WatchOperation"

SERVICES = {
    "pkger.parser.v1.ParserService": "parser",
    "pkger.planner.v1.PlannerService": "planner",
    "pkger.planner.v1.PackageService": "planner",
    "pkger.applier.v1.ApplierService": "applier",
    "pkger.stack.v1.StackService": "stack",
    "pkger.stack.v1.RepositoryService": "stack",
    "pkger.stack.v1.DefinitionService": "stack",
    "pkger.stack.v1.SnapshotService": "stack",
    "pkger.applier.v1.ActionService": "applier",
    "pkger.journal.v1.JournalService": "stack",
}

COMMANDS = (
    "validate -f FILE",
    "kinds",
    "platforms list",
    "platforms check",
    "repo add main https://packages.example.com",
    "repo list",
    "repo disable main",
    "repo remove main",
    "repo add own REPOSITORY",
    "packages search labels",
    "packages versions base-labels",
    "packages show base-labels",
    "packages resolve team-dashboards",
    "install web-buckets --yes",
    "packages list",
    "packages list --outdated",
    "packages why web-buckets",
    "blueprints apply -f BLUEPRINT",
    "blueprints list",
    "blueprints show stack-backup",
    "functions",
    "stacks init s",
    "stacks update s --description new",
    "stacks policy s --set protect=true",
    "stacks policy s --set protect=",
    "plan -f FILE --stack s",
    "plan -f FILE --stack s --out PLAN",
    "plans list",
    "apply --plan PLAN",
    "apply -f FILE --stack s --yes",
    "apply -f OTHER --stack s --yes",
    "stacks list",
    "stacks show s",
    "stacks history s",
    "stacks diff s 1 2",
    "stacks drift s",
    "stacks rename s Label:lucid_einstein other",
    "stacks forget s Label:other",
    "stacks import s Label LABEL --as other",
    "stacks import s -f FILE --yes",
    "perform backup --blueprint stack-backup --object stack/s --name first",
    "perform backup -f BLUEPRINT --object stack/s --name second --dry-run",
    "actionsets create -f ACTION_SET --detach",
    "actionsets list",
    "actionsets show first",
    "actionsets watch first",
    "actionsets cancel first",
    "snapshots list",
    "snapshots show SNAPSHOT",
    "snapshots verify SNAPSHOT",
    "snapshots save SNAPSHOT",
    "plan --snapshot SNAPSHOT --stack s",
    "snapshots delete SNAPSHOT",
    "actionsets delete first",
    "blueprints delete stack-backup",
    "resources Label",
    "export --stack s",
    "export --all",
    "plan -f FILE --stack s --out PLAN",
    "plans show NAME",
    "plans delete NAME",
    "operations list",
    "operations show OPERATION",
    "operations watch OPERATION",
    "operations cancel OPERATION",
    "operations recover OPERATION",
    "stacks rollback s 2 --yes",
    "stacks uninstall s --yes",
    "stacks watch s",
    "admin restored",
)
"""Commands, in an order in which they can run; words in capitals stand for files and names."""

ACTION_SET = """
apiVersion: pkger/v1
kind: ActionSet
metadata: {name: third}
spec: {actions: [{name: delete, blueprint: stack-backup, artifacts: {stackBackup: {keyValue: {snapshot: none}}}}]}
"""

UNUSED = {"GetRevision", "DeleteStack"}
"""Methods for clients that the command line does not call."""

FOLLOWED = {"Apply", "ApplyPlan", "UninstallStack", "RollbackStack", "WatchOperation", "RecoverOperation"}
"""Methods whose operation is followed further with WatchOperation if their stream breaks."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def recorded(module_folder: Path) -> AsyncIterator["Commands"]:
    async with cluster(module_folder) as services:
        channels: dict[str, Any] = {full: grpc_channel(services.addresses[name]) for full, name in SERVICES.items()}
        async with replaying(channels) as (handler, address):
            commands = Commands(handler, address, module_folder)
            await commands.record()
            yield commands
        for channel in channels.values():
            await channel.close()


class Commands:
    """The commands and their recorded calls."""

    def __init__(self, handler: Replaying, address: str, folder: Path) -> None:
        self.address = address
        self.ended: list[Ended] = []
        self.calls: list[list[Recorded]] = []
        self._handler = handler
        self._env = environment(folder, dict.fromkeys(set(SERVICES.values()), address))
        self._words = {
            "FILE": str(folder / "one.json"),
            "OTHER": str(folder / "two.json"),
            "BLUEPRINT": str(ROOT / "examples" / "backup.yml"),
            "ACTION_SET": str(folder / "set.yml"),
            "PLAN": str(folder / "plan"),
            "REPOSITORY": (ROOT / "examples" / "repository").as_uri(),
        }
        (folder / "one.json").write_text(text(LABEL))
        (folder / "set.yml").write_text(ACTION_SET)
        (folder / "two.json").write_text(text(LABEL, BUCKET, an_object("Label", "third", "third")))

    async def record(self) -> None:
        """Run each command at the services."""
        for number, command in enumerate(COMMANDS):
            if command == "operations list":
                self._words["OPERATION"] = await self._first("operations")
            elif command == "plans show NAME":
                self._words["NAME"] = await self._first("plans")
            elif command == "snapshots show SNAPSHOT":
                self._words["SNAPSHOT"] = await self._first("snapshots")
            elif command.startswith("stacks forget"):
                shown = await pkger("stacks", "show", "s", "-o", "json", env=self._env)
                ids = {each["key"]["name"]: each["resource_id"] for each in json.loads(shown.out)["resources"]}
                self._words["LABEL"] = ids["other"]
            self._handler.calls = []
            if command == "stacks watch s":
                self.ended.append(await self._watched())
            else:
                self.ended.append(await self.run(number))
            self.calls.append([*self._handler.calls])

    async def run(self, number: int) -> Ended:
        """Run a command."""
        return await pkger(*(self._words.get(word, word) for word in COMMANDS[number].split()), env=self._env)

    async def with_fault(self, number: int, fault: Fault) -> Ended:
        """Run a command with its recorded calls, one of which ends early."""
        calls = self.calls[number]
        followed = [call for call in calls if call.method.rpartition("/")[2] in FOLLOWED]
        self._handler.replay([*calls, *map(_watched_again, followed)], fault)
        return await self.run(number)

    def faults(self) -> Iterator[tuple[int, Fault]]:
        """The places at which a call of each command, by its number, may end; each with another status."""
        place = 0
        for number, calls in enumerate(self.calls):
            counts = Counter[str]()
            for call in calls:
                for after in (0, 1) if is_stream(call.method) and call.messages else (0,):
                    yield number, Fault(call.method, counts[call.method], after, CODES[place % len(CODES)])
                    place += 1
                counts[call.method] += 1

    async def _first(self, collection: str) -> str:
        listed = await pkger(collection, "list", "-o", "json", env=self._env)
        return str(json.loads(listed.out)[0]["id"])

    async def _watched(self) -> Ended:
        self._handler.streaming.clear()
        watching = asyncio.create_task(self.run(COMMANDS.index("stacks watch s")))
        await self._handler.streaming.wait()
        calls, self._handler.calls = self._handler.calls, []
        await pkger("stacks", "delete", "s", "--yes", env=self._env)
        ended = await watching
        self._handler.calls = calls
        return ended


def _watched_again(call: Recorded) -> Recorded:
    """The events of an operation as WatchOperation returns them."""
    service, name = call.method.strip("/").split("/")
    method = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
    kind: Any = message_factory.GetMessageClass(method.output_type)
    watched = Recorded(WATCH)
    watched.messages = [each for each in call.messages if kind.FromString(each).seq]
    return watched


def check(ended: Ended, fault: Fault, commands: Commands, number: int) -> None:
    """The command says what is wrong, or does without the call."""
    where = COMMANDS[number], fault
    assert "Traceback" not in ended.err + ended.out, where
    lines = [line for line in ended.err.splitlines() if line.startswith("Error: ")]
    # An action set exists before it is watched, so even its first event is awaited again.
    is_known = fault.after or (fault.name == "WatchOperation" and COMMANDS[number].startswith("perform"))
    if fault.name == "WatchStack" or (fault.name in FOLLOWED and is_known):
        assert ended.code == commands.ended[number].code, (where, ended)
        return
    assert (ended.code, len(lines), ended.err.splitlines()[-1:]) == (1, 1, lines), (where, ended)
    service = SERVICES[fault.method.split("/")[1]]
    assert f"the {service} service at {commands.address} " in lines[0], (where, ended)
    if fault.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        assert "does not answer: no " in lines[0], (where, ended)
        assert "(check whether it runs, and its address)" in lines[0], (where, ended)
    else:
        assert f"the call ended with status {fault.code.name}: somebody else" in lines[0], (where, ended)
        assert "(try again; if it fails again, check the log and the version of the service)" in lines[0], (
            where,
            ended,
        )


async def test_every_call_of_the_command_line_is_tried(recorded: Commands) -> None:
    called = {call.method for calls in recorded.calls for call in calls}
    public = {
        f"/{service}/{method.name}"
        for service in SERVICES
        if not service.startswith("pkger.journal.")
        for method in descriptor_pool.Default().FindServiceByName(service).methods
        if method.name not in UNUSED
    }
    assert called == public | {"/pkger.journal.v1.JournalService/MarkRestored"}


async def test_a_status_without_a_reason_is_one_sentence(recorded: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "SECOND", 0.01)
    for number, fault in recorded.faults():
        check(await recorded.with_fault(number, fault), fault, recorded, number)


@pytest.mark.slow
@pytest.mark.parametrize("code", CODES)
async def test_each_status_at_each_call_is_one_sentence(
    recorded: Commands, code: grpc.StatusCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "SECOND", 0.01)
    for number, fault in recorded.faults():
        coded = replace(fault, code=code)
        check(await recorded.with_fault(number, coded), coded, recorded, number)
