"""DefinitionService: what is stored, replaced, listed, deleted and refused."""

import json
from typing import Any

import pytest
from pkger.model.v1.definition_pb2 import Definition
from pkger.stack.v1 import definition_pb2
from pkger.stack.v1.definition_pb2_grpc import DefinitionServiceStub

from services.core.errors import DefinitionChanged, DefinitionNotFound, RequestIdReused, RequestInvalid
from stack_svc.rules.definitions import MOST_CHANGES
from tests.stack.service import Client, Clock

Stored = definition_pb2.StoredDefinition


def a_blueprint(name: str = "backup", **spec: Any) -> Definition:
    phases = [{"name": "export", "func": "ExportStack", "retry": {"attempts": 3}}]
    document = {
        "apiVersion": "pkger/v1",
        "kind": "Blueprint",
        "metadata": {"name": name},
        "spec": {"actions": {"backup": {"phases": phases}}, **spec},
    }
    return Definition(kind="Blueprint", name=name, json=json.dumps(document))


def a_config_map(name: str = "db", **data: str) -> Definition:
    document = {"apiVersion": "pkger/v1", "kind": "ConfigMap", "metadata": {"name": name}, "spec": {"data": data}}
    return Definition(kind="ConfigMap", name=name, json=json.dumps(document))


async def put(service: Client, *definitions: Definition, request_id: str = "", etag: str = "") -> list[Stored]:
    changes = [definition_pb2.DefinitionChange(definition=each, etag=etag) for each in definitions]
    request = definition_pb2.PutDefinitionsRequest(request_id=request_id, changes=changes)
    stub = DefinitionServiceStub(service.peer.channel)
    return list((await service.peer.call(stub.PutDefinitions, request)).definitions)


async def get(service: Client, kind: str, name: str) -> Stored:
    request = definition_pb2.GetDefinitionRequest(kind=kind, name=name)
    return (await service.peer.call(DefinitionServiceStub(service.peer.channel).GetDefinition, request)).definition


async def page(
    service: Client, kind: str = "", size: int = 0, token: str = ""
) -> definition_pb2.ListDefinitionsResponse:
    request = definition_pb2.ListDefinitionsRequest(kind=kind, page_size=size, page_token=token)
    return await service.peer.call(DefinitionServiceStub(service.peer.channel).ListDefinitions, request)


async def delete(service: Client, kind: str, name: str, etag: str = "") -> None:
    request = definition_pb2.DeleteDefinitionRequest(kind=kind, name=name, etag=etag)
    await service.peer.call(DefinitionServiceStub(service.peer.channel).DeleteDefinition, request)


def names(stored: definition_pb2.ListDefinitionsResponse) -> list[tuple[str, str]]:
    return [(each.definition.kind, each.definition.name) for each in stored.definitions]


async def test_definitions_are_stored_as_canonical_text(service: Client, clock: Clock) -> None:
    blueprint, config_map = await put(service, a_blueprint(description="Backs up"), a_config_map(host="db1"))
    assert (blueprint.definition.kind, blueprint.definition.name) == ("Blueprint", "backup")
    assert (blueprint.description, blueprint.definition.json) == ("Backs up", "")
    assert blueprint.create_time == blueprint.update_time
    assert blueprint.create_time.ToMicroseconds() == clock.now
    read = await get(service, "ConfigMap", "db")
    assert read.definition.json == (
        '{"apiVersion":"pkger/v1","kind":"ConfigMap","metadata":{"name":"db"},"spec":{"data":{"host":"db1"}}}'
    )
    assert (read.etag, read.update_time) == (config_map.etag, config_map.update_time)
    assert read.etag.startswith("sha256:")
    assert names(await page(service)) == [("Blueprint", "backup"), ("ConfigMap", "db")]
    assert names(await page(service, "ConfigMap")) == [("ConfigMap", "db")]
    assert not any(each.definition.json for each in (await page(service)).definitions)


async def test_another_text_replaces_a_definition_and_the_same_text_does_not(service: Client, clock: Clock) -> None:
    [first] = await put(service, a_config_map(host="db1"))
    clock.forward(1)
    [same] = await put(service, a_config_map(host="db1"))
    assert same == first
    [second] = await put(service, a_config_map(host="db2"))
    assert second.etag != first.etag
    assert (second.create_time, second.update_time.ToMicroseconds()) == (first.create_time, clock.now)


async def test_definitions_are_listed_in_pages(service: Client) -> None:
    await put(service, *[a_config_map(f"c{number}") for number in range(5)], a_blueprint())
    pages = [await page(service, size=4)]
    pages.append(await page(service, size=4, token=pages[-1].next_page_token))
    assert [len(each.definitions) for each in pages] == [4, 2]
    assert pages[-1].next_page_token == ""
    assert names(pages[0])[0] == ("Blueprint", "backup")


async def test_an_etag_protects_what_others_changed(service: Client) -> None:
    [first] = await put(service, a_config_map(host="db1"))
    [second] = await put(service, a_config_map(host="db2"), etag=first.etag)
    for change in (
        put(service, a_config_map(host="db3"), etag=first.etag),
        put(service, a_config_map("other"), etag=first.etag),
        delete(service, "ConfigMap", "db", first.etag),
    ):
        with pytest.raises(DefinitionChanged):
            await change
    assert (await get(service, "ConfigMap", "db")).etag == second.etag
    await delete(service, "ConfigMap", "db", second.etag)
    with pytest.raises(DefinitionNotFound):
        await get(service, "ConfigMap", "db")
    with pytest.raises(DefinitionNotFound):
        await delete(service, "ConfigMap", "db")


async def test_all_definitions_of_a_call_are_stored_or_none(service: Client) -> None:
    await put(service, a_config_map("b", host="db1"))
    changes = [
        definition_pb2.DefinitionChange(definition=a_config_map("a")),
        definition_pb2.DefinitionChange(definition=a_config_map("b"), etag="sha256:other"),
    ]
    stub = DefinitionServiceStub(service.peer.channel)
    with pytest.raises(DefinitionChanged):
        await service.peer.call(stub.PutDefinitions, definition_pb2.PutDefinitionsRequest(changes=changes))
    assert names(await page(service)) == [("ConfigMap", "b")]


async def test_a_repeated_request_stores_nothing_again(service: Client) -> None:
    [first] = await put(service, a_config_map(host="db1"), request_id="r")
    [other] = await put(service, a_config_map(host="db2"))
    assert await put(service, a_config_map(host="db1"), request_id="r") == [other]
    with pytest.raises(RequestIdReused):
        await put(service, a_config_map(host="db3"), request_id="r")
    await delete(service, "ConfigMap", "db")
    with pytest.raises(DefinitionNotFound):
        await put(service, a_config_map(host="db1"), request_id="r")
    assert first.etag != other.etag


def _altered(definition: Definition, **fields: str) -> Definition:
    altered = Definition()
    altered.CopyFrom(definition)
    for name, value in fields.items():
        setattr(altered, name, value)
    return altered


ACTION_SET = {
    "apiVersion": "pkger/v1",
    "kind": "ActionSet",
    "metadata": {"name": "nightly"},
    "spec": {"from": {"actionSet": "backup-1", "action": "restore"}},
}


@pytest.mark.parametrize(
    ("definitions", "field", "problem"),
    [
        ([], "changes", "has 0 entries; give 1 to 100"),
        ([a_config_map(f"c{number}") for number in range(MOST_CHANGES + 1)], "changes", "has 101 entries"),
        ([a_config_map(), a_config_map(host="x")], "changes[1].definition", "names ConfigMap 'db', as changes[0] does"),
        ([_altered(a_config_map(), json="{")], "changes[0].definition.json", ""),
        ([_altered(a_config_map(), json="[]")], "changes[0].definition.json", "is not valid"),
        ([_altered(a_config_map(), json="")], "changes[0].definition.json", ""),
        ([_altered(a_config_map(), name="other")], "changes[0].definition.json", "is ConfigMap 'db'"),
        ([_altered(a_config_map(), kind="Blueprint")], "changes[0].definition.json", "is ConfigMap 'db'"),
        (
            [Definition(kind="ActionSet", name="nightly", json=json.dumps(ACTION_SET))],
            "changes[0].definition.json",
            "is an action set",
        ),
        (
            [a_config_map("ok"), a_blueprint(actions={"a": {"phases": []}, "b": {"phases": [{"name": "x"}]}})],
            "changes[1].definition.json",
            "is not valid: spec.actions.a.phases",
        ),
        ([a_config_map(text="x" * (256 << 10))], "changes[0].definition.json", "at most 262,144 are accepted"),
    ],
)
async def test_what_is_not_valid_is_refused(
    service: Client, definitions: list[Definition], field: str, problem: str
) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await put(service, *definitions)
    assert raised.value.metadata["field"] == field
    assert problem in raised.value.metadata["problem"]
    assert names(await page(service)) == []


@pytest.mark.parametrize(("size", "token", "field"), [(1001, "", "page_size"), (0, "nonsense", "page_token")])
async def test_a_page_that_cannot_be_read_is_refused(service: Client, size: int, token: str, field: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await page(service, size=size, token=token)
    assert raised.value.metadata["field"] == field
