"""The servicer, which is the same for every driver, and how drivers are opened."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest

import services.drivers.embedded.driver as embedded
from services.core.check import PlatformCheck
from services.core.errors import Internal, KindUnsupported
from services.core.model import Organization, PlatformTraits, Spec
from services.drivers.driver import OpenDriver, PlaceOf
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.mutation import (
    Ambiguous,
    Create,
    Fence,
    Mutation,
    Rejected,
    ResourceId,
    Result,
    StoredResource,
    Update,
)
from services.drivers.options import OptionsInvalid, read_options
from services.drivers.registry import DRIVERS, opened, refuse_shared_place
from services.engine.outcome import RejectionReason
from services.kinds.format.canonical import spec_of
from services.platforms import Platform
from services.rpc.entrances import CannotServe
from tests.drivers.client import (
    CONTENT_REFUSED,
    KIND_UNSUPPORTED,
    client_of,
    create,
    delete,
    ends,
    put_secret,
    update,
    wanted,
)

OPEN: OpenDriver = embedded.open_driver
PLACE: PlaceOf = embedded.place_of
"""Lets the type checker compare the module of a driver with its protocol."""


class Scripted:
    """A driver that returns what a test sets, and records the mutations that it receives."""

    def __init__(self, traits: PlatformTraits, results: Sequence[Result] = (), held: Sequence[str] = ()) -> None:
        self.traits, self.results, self.held = traits, results, held
        self.sent: list[Mutation] = []
        self.prepared: Sequence[Spec | Rejected] = ()

    async def describe(self) -> PlatformTraits:
        return self.traits

    async def list_resources(self, org: str, kinds: Sequence[str]) -> Iterable[StoredResource]:
        return (StoredResource(ResourceId("Label", id_), "{}", "") for id_ in self.held)

    async def read_resources(self, org: str, ids: Sequence[ResourceId]) -> Sequence[StoredResource | None]:
        return []

    async def prepare_specs(self, org: str, writes: Sequence[Create | Update]) -> Sequence[Spec | Rejected]:
        self.sent += writes
        return self.prepared

    async def orgs(self) -> list[Organization]:
        return []

    async def check(self, org: str) -> PlatformCheck:
        return PlatformCheck(())

    async def secret_keys(self, org: str) -> Iterable[str]:
        return {"b", "a"}

    async def mutate(self, org: str, fence: Fence | None, batch: Sequence[Mutation]) -> Sequence[Result]:
        self.sent += batch
        return self.results

    async def show_token(self, fence: Fence) -> Fence | None:
        return replace(fence, token=fence.token - 1)

    async def close(self) -> None:
        pass


async def test_a_driver_may_list_in_any_order() -> None:
    async with client_of(Scripted(EMBEDDED, held=["3", "1", "2"])) as client:
        assert [label.id for label in await client.listing("Label")] == ["1", "2", "3"]
        assert await client.secret_keys() == ["a", "b"]


async def test_a_driver_receives_only_mutations_that_can_be_valid() -> None:
    driver = Scripted(replace(EMBEDDED, holds_secrets=False), [Ambiguous("who knows")])
    async with client_of(driver) as client:
        results = await client.mutate(
            create("Spaceship", {"name": "x"}), delete("Label", "1"), put_secret("k", "canary-8a1f")
        )
        assert ends(results) == ["rejected", "ambiguous", "rejected"]
        assert [results[at].rejected.reason for at in (0, 2)] == [KIND_UNSUPPORTED] * 2
        assert len(driver.sent) == 1
        with pytest.raises(KindUnsupported):
            await client.secret_keys()


async def test_a_driver_prepares_only_specs_that_can_be_valid() -> None:
    driver = Scripted(EMBEDDED)
    driver.prepared = [spec_of({"name": "trimmed"}), Rejected(RejectionReason.CONTENT_REFUSED, "too long")]
    sent = [
        create("Spaceship", {"name": "x"}),
        create("Label", {"name": " trimmed "}),
        create("Label", {"color": "red"}),
        update("Label", "1", {"name": "long"}),
    ]
    async with client_of(driver) as client:
        lacking, trimmed, faulty, long = await client.prepared(*map(wanted, sent))
        assert trimmed == ('{"name":"trimmed"}', None)
        assert [refused and refused.reason for _, refused in (lacking, faulty, long)] == [
            KIND_UNSUPPORTED,
            CONTENT_REFUSED,
            CONTENT_REFUSED,
        ]
        assert [type(each) for each in driver.sent] == [Create, Update]
        with pytest.raises(Internal):
            await client.prepared(wanted(sent[1]))


async def test_results_without_a_request_are_a_defect_and_never_an_outcome() -> None:
    async with client_of(Scripted(EMBEDDED, [Ambiguous("one"), Ambiguous("too many")])) as client:
        for call in (client.mutate(delete("Label", "1")), client.read(("Label", "1"))):
            with pytest.raises(Internal):
                await call


@pytest.mark.parametrize("name", DRIVERS)
def test_the_module_of_a_driver_is_named_after_it(name: str) -> None:
    assert DRIVERS[name] == f"services.drivers.{name}.driver"


@dataclass(frozen=True, slots=True)
class Options:
    url: str
    token_variable: str = ""
    retries: int = 3
    pause: float = 0.5
    quiet: bool = False


def row(**options: object) -> Platform:
    return Platform("lab", "scripted", "", options, "/p.yml:4")


def test_options_are_the_fields_of_a_dataclass() -> None:
    assert read_options(Options, row(url="u", pause=2)) == Options("u", pause=2)


def test_every_invalid_option_is_reported_without_its_value() -> None:
    given = row(token="canary-8a1f", retries=True, pause="canary-8a1f", quiet=1)
    with pytest.raises(OptionsInvalid) as raised:
        read_options(Options, given)
    assert str(raised.value) == (
        "/p.yml:4: platform lab: unknown option 'token', its driver has: pause, quiet, retries, token_variable, url;"
        " option 'url' is missing, write text; option 'retries': write a whole number; option 'pause': write a number;"
        " option 'quiet': write true or false"
    )
    assert "canary-8a1f" not in repr(given)


async def test_embedded_platforms_have_files_of_their_own(tmp_path: Path) -> None:
    rows = [
        Platform("embedded", "embedded", ""),
        Platform("lab", "embedded", ""),
        Platform("far", "embedded", "", {"file": "deep/far.db"}),
    ]
    for platform in rows:
        async with opened(platform, tmp_path):
            pass
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.db"))
    assert made == ["deep/far.db", "platform-lab.db", "platform.db"]


def embedded_row(line: int, name: str, file: str = "", driver: str = "embedded") -> Platform:
    return Platform(name, driver, "", {"file": file} if file else {}, f"/p.yml:{line}")


@pytest.mark.parametrize(
    "file", ["far.db", "./far.db", "deep/../far.db", "{folder}/far.db", "link.db", "linked/far.db"]
)
def test_rows_of_one_driver_with_the_same_data_are_refused(tmp_path: Path, file: str) -> None:
    """One resource could be owned by two stacks, on two platforms."""
    (tmp_path / "link.db").symlink_to("far.db")
    (tmp_path / "linked").symlink_to(tmp_path)
    lab = embedded_row(1, "lab", file.format(folder=tmp_path))
    far = embedded_row(2, "far", "far.db")
    for one, other in ((lab, far), (far, lab)):
        with pytest.raises(OptionsInvalid) as raised:
            refuse_shared_place(one, (lab, far), tmp_path)
        assert str(raised.value) == (
            f"{one.source}: platform {one.name}: it has the same data as platform {other.name} ({other.source});"
            " a platform has one row: remove one, or give one other options"
        )


@pytest.mark.parametrize(("name", "default"), [("embedded", "platform.db"), ("lab", "platform-lab.db")])
def test_a_row_that_names_the_default_file_of_another_is_refused(tmp_path: Path, name: str, default: str) -> None:
    rows = (embedded_row(1, name), embedded_row(2, "far", default))
    for row in rows:
        with pytest.raises(OptionsInvalid, match="a platform has one row"):
            refuse_shared_place(row, rows, tmp_path)


def test_rows_with_data_of_their_own_or_another_driver_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = (embedded_row(1, "embedded"), embedded_row(2, "lab"), embedded_row(3, "far", "platform.db", driver=""))
    for row in rows[:2]:
        refuse_shared_place(row, rows, tmp_path)
    monkeypatch.delattr(embedded, "place_of")
    refuse_shared_place(rows[0], (rows[0], embedded_row(4, "same", "platform.db")), tmp_path)


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("a\0b", "option 'file' has a character that no file name can have, such as NUL; remove it"),
        ("\ud800", "option 'file' has a character that no file name can have, such as NUL; remove it"),
        ("/", "option 'file' names a folder; name a file"),
        (".", "option 'file' names a folder; name a file"),
        ("stack.db", "option 'file' names stack.db, the database of the stack service; name another file"),
        ("deep/../stack.db", "option 'file' names stack.db, the database of the stack service; name another file"),
    ],
)
async def test_a_file_that_the_embedded_driver_cannot_use_is_refused(tmp_path: Path, file: str, problem: str) -> None:
    with pytest.raises(OptionsInvalid) as raised:
        async with opened(embedded_row(4, "lab", file), tmp_path):
            pass
    assert str(raised.value) == f"/p.yml:4: platform lab: {problem}"
    assert not list(tmp_path.iterdir())


async def test_a_file_that_cannot_be_opened_is_reported_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for platform, row in (
        (Platform("lab", "embedded", "", {"file": "file/lab.db"}, "/p.yml:4"), "/p.yml:4: platform lab"),
        (Platform("lab", "embedded", "", {"file": "file/lab.db"}), "platform lab"),
    ):
        with pytest.raises(CannotServe) as raised:
            async with opened(platform, tmp_path):
                pass
        assert str(raised.value).startswith(f"{row}: the folder {tmp_path}/file cannot be made")


async def test_a_driver_is_closed_at_the_end_of_the_block(tmp_path: Path) -> None:
    async with opened(Platform("embedded", "embedded", ""), tmp_path) as driver:
        pass
    with pytest.raises((RuntimeError, grpc.RpcError)):
        await driver.list_resources("o", ["Label"])


@pytest.mark.parametrize(("fences", "seen"), [(True, (6, "operation-a")), (False, None)])
async def test_only_a_platform_that_fences_is_shown_a_token(fences: bool, seen: tuple[int, str] | None) -> None:
    async with client_of(Scripted(replace(EMBEDDED, fences=fences))) as client:
        assert await client.show_token("stack", 7, "operation-a") == seen
