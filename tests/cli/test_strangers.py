"""
Another user of the machine, beside a running ``pkger up``: nothing of ours is read, written, called or answered.

The stranger is a process that begins as root, gives up its rights, and then tries each thing.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from pkger.stack.v1 import stack_pb2

from services.access.token_file import home_token
from services.access.tokens import new_token
from services.system import MachineIds
from tests import needs
from tests.apply.packages import an_object, text
from tests.cli.command import environment, pkger
from tests.cli.test_running_services import running

pytestmark = [pytest.mark.slow, needs.root(), needs.path("/proc/self/task")]

NOBODY = 65534

STRANGER = """
import json, os, socket, sys
os.setgroups([]); os.setgid({uid}); os.setuid({uid})

def tried(act, *arguments):
    try:
        return str(act(*arguments))
    except OSError as error:
        return error.strerror

def connected(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(path)

def bound(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((host, port))

acts = {{"read": lambda path: open(path, "rb").read(), "write": lambda path: open(path, "ab").close(),
         "list": os.listdir, "connect": connected, "bind": bound}}
print(json.dumps([tried(acts[act], *arguments) for act, *arguments in json.loads(sys.argv[1])]))
"""


def tried(acts: Sequence[Sequence[object]]) -> dict[str, str]:
    """What happens when a stranger tries each act."""
    command = [sys.executable, "-c", STRANGER.format(uid=NOBODY), json.dumps(acts)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {" ".join(map(str, act)): end for act, end in zip(acts, json.loads(printed), strict=True)}


@pytest.fixture
def home() -> Iterator[Path]:
    """A home in a folder that everybody may enter, as ``/home/user`` often is."""
    folder = Path(tempfile.mkdtemp(prefix="pkger-"))
    folder.chmod(0o755)
    yield folder / "home"
    shutil.rmtree(folder)


def services_of(home: Path) -> dict[str, int]:
    """The ids of the processes of a ``pkger up`` on *home*, by module."""
    lock = (home / "up.lock").read_text().split()[0]
    pids = [int(pid) for pid in Path(f"/proc/{lock}/task/{lock}/children").read_text().split()]
    return {Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[3].decode(): pid for pid in pids}


def ports_of(pid: int) -> set[tuple[str, int]]:
    """The addresses on which a process listens."""
    inodes = {
        os.readlink(each)[8:-1]
        for each in Path(f"/proc/{pid}/fd").iterdir()
        if each.is_symlink() and os.readlink(each).startswith("socket:")
    }
    found = set[tuple[str, int]]()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for row in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            fields = row.split()
            if fields[3] == "0A" and fields[9] in inodes:
                host, port = fields[1].split(":")
                raw = b"".join(bytes.fromhex(host)[i : i + 4][::-1] for i in range(0, len(host) // 2, 4))
                # A socket of IPv6 may have an address of IPv4.
                found.add((socket.inet_ntop(family, raw).removeprefix("::ffff:"), int(port, 16)))
    return found


async def test_a_stranger_gets_nothing(home: Path) -> None:
    package = home.parent / "p.json"
    package.write_text(text(an_object("Label", "l", "label")))
    async with running(home) as (env, _):
        assert (await pkger("apply", "-f", str(package), "--stack", "s", "--yes", env=env)).code == 0
        services = services_of(home)
        assert len(services) == 6
        files = [each for each in home.rglob("*") if not each.is_dir()]
        assert {"token", "stack.db", "platform.db", "stack.sock", "applier.lock"} <= {each.name for each in files}
        acts: list[list[object]] = [["list", str(home)], ["list", str(home / "run")]]
        acts += [[act, str(each)] for each in files for act in ("read", "write")]
        acts += [["connect", str(each)] for each in files if each.suffix == ".sock"]
        acts += [["read", f"/proc/{pid}/{name}"] for pid in services.values() for name in ("environ", "mem", "maps")]
        ends = tried(acts)
        assert set(ends.values()) == {"Permission denied"}, ends
        for module, pid in services.items():
            ports = ports_of(pid)
            hosts = {host for host, _ in ports}
            assert hosts == (set() if module == "services.drivers" else {"127.0.0.1", "::1"}), module
            for host, port in ports:
                assert tried([["bind", host, port]]) == {f"bind {host} {port}": "Address already in use"}
                assert refused(host, port, module), (module, host, port)
        # A port of a service that died is free for others. Our commands do not call it.
        os.kill(services["applier_svc"], 9)
        again = await pkger("apply", "-f", str(package), "--stack", "s", "--yes", env=env)
        assert (again.code, again.err) == (0, "")


def refused(host: str, port: int, module: str) -> bool:
    """Whether a port refuses a stranger without the token."""
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if module == "services.gateway":
        command = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"http://{address}/api/v2/stacks"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout == "401"
    with grpc.insecure_channel(address) as channel:
        name = {"parser_svc": "parser.v1.ParserService/ListKinds", "stack_svc": "stack.v1.StackService/ListStacks"}
        name |= {"planner_svc": "planner.v1.PlannerService/ListPlatforms"}
        name |= {"applier_svc": "applier.v1.ApplierService/ListOperations"}
        call: Any = channel.unary_unary(f"/pkger.{name[module]}", stack_pb2.GetStackRequest.SerializeToString)
        for token in (None, new_token(MachineIds())):
            metadata = (("authorization", f"Bearer {token}"),) if token else None
            with pytest.raises(grpc.RpcError) as raised:
                call(stack_pb2.GetStackRequest(), metadata=metadata)
            if raised.value.code() is not grpc.StatusCode.UNAUTHENTICATED:
                return False
    return True


async def test_what_a_stranger_prepared_is_refused_in_one_line(home: Path) -> None:
    cases: Mapping[str, str] = {"home": str(home), "run": str(home / "run")}
    for name, folder in cases.items():
        home.mkdir(mode=0o700, exist_ok=True)
        Path(folder).mkdir(mode=0o777, exist_ok=True)
        os.chown(folder, NOBODY, NOBODY)
        end = await pkger("up", env=environment(home))
        assert end.code == 1, name
        last = end.err.splitlines()[-1]
        assert last.startswith("Error: ")
        assert f"the folder {folder} belongs to another user (uid {NOBODY})" in last
        shutil.rmtree(home)


async def test_sockets_in_a_folder_of_a_stranger_are_refused(home: Path) -> None:
    """The stranger could put another folder in its place, and get what commands send."""
    folder = home.parent / "folder"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    end = await pkger("up", env=environment(home) | {"PKGER_RUN": str(folder / "run")})
    assert end.code == 1
    last = end.err.splitlines()[-1]
    assert last.startswith("Error: ")
    assert f"the folder {folder / 'run'} is in a folder of another user (uid {NOBODY})" in last


async def test_a_token_that_a_stranger_prepared_is_refused(home: Path) -> None:
    home_token(home)
    token = home / "token"
    os.chown(token, NOBODY, NOBODY)
    end = await pkger("token", "local", env=environment(home))
    assert (end.code, end.out) == (1, "")
    assert f"the file {token} belongs to another user" in end.err
