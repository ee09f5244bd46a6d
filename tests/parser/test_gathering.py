"""Sources of requests: addresses and Jsonnet, within the settings of the operator."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from parser_svc.source_texts import EVALUATIONS, FETCHES, Gatherer, SourceSpec
from parser_svc.sources import Encoding, Source, read_sources
from services.core.errors import EncodingInvalid, PkgerError, SourceTooLarge, SourceUndecodable, SourceUnreadable
from services.fetching import Fetcher
from services.settings import Bounds, load
from tests.web import drip, serving

YAML = "kind: Label\n"
PROGRAM = '[{kind: "Lab" + "el"}]'

LOCAL = Fetcher(may_ask=lambda address: True)
STRICT = Gatherer(fetcher=LOCAL)
OPEN = Gatherer(allow_jsonnet=True, fetcher=LOCAL)


@pytest.mark.parametrize(
    ("wanted", "source"),
    [
        (SourceSpec(text=YAML), Source("string", YAML)),
        (SourceSpec("a.yml", text=YAML), Source("a.yml", YAML, Encoding.YAML)),
        (SourceSpec("a", Encoding.JSON, "[]", generated=True), Source("a", "[]", Encoding.JSON, True)),
        (SourceSpec("a.jsonnet", Encoding.JSON, "[]", generated=True), Source("a.jsonnet", "[]", Encoding.JSON, True)),
    ],
)
async def test_a_text_is_taken_as_it_is(wanted: SourceSpec, source: Source) -> None:
    assert await STRICT.gather([wanted]) == [source]


async def test_an_address_is_named_and_read_as_it_was_given() -> None:
    texts = {"/a.yml": YAML, "/b.json": "[]", "/c": YAML}
    async with serving(texts) as server:
        wanted = [
            SourceSpec(url=f"{server.address}/a.yml"),
            SourceSpec("b", url=f"{server.address}/b.json"),
            SourceSpec("c.json", url=f"{server.address}/a.yml"),
            SourceSpec(url=f"{server.address}/a.yml?x=.json"),
            SourceSpec(url=f"{server.address}/a.yml?x"),
            SourceSpec("d.json", url=f"{server.address}/c"),
            SourceSpec(encoding=Encoding.JSON, url=f"{server.address}/a.yml"),
        ]
        sources = await STRICT.gather(wanted)
    assert [source.encoding for source in sources] == [
        Encoding.YAML,
        Encoding.JSON,
        Encoding.YAML,
        Encoding.JSON,
        None,
        Encoding.JSON,
        Encoding.JSON,
    ]
    assert [source.name for source in sources[:3]] == [f"{server.address}/a.yml", "b", "c.json"]


JSONNET = [
    SourceSpec("a", Encoding.JSONNET, PROGRAM),
    SourceSpec("a.jsonnet", text=PROGRAM),
    SourceSpec("a.JSONNET", text=PROGRAM),
    SourceSpec("a%2Ejsonnet", text=PROGRAM),
    SourceSpec(url="{address}/a.jsonnet"),
    SourceSpec(url="{address}/a.%6aSONNET"),
    SourceSpec(url="{address}/a.jsonnet", encoding=Encoding.YAML),
    SourceSpec(url="{address}/a", encoding=Encoding.JSONNET),
]


async def test_programs_import_files_of_the_libraries_of_the_operator(tmp_path: Path) -> None:
    (tmp_path / "label.libsonnet").write_text('{kind: "Label"}')
    gatherer = Gatherer.of(load({"PKGER_ALLOW_JSONNET": "1", "PKGER_JPATH": f"/nowhere:{tmp_path}"}))
    [source] = await gatherer.gather([SourceSpec("a.jsonnet", text='[import "label.libsonnet"]')])
    assert source.text == '[{"kind": "Label"}]'
    with pytest.raises(SourceUndecodable, match="it is not in PKGER_JPATH"):
        await gatherer.gather([SourceSpec("a.jsonnet", text=f'[importstr "..{__file__}"]')])


@pytest.mark.parametrize("wanted", JSONNET, ids=str)
async def test_jsonnet_is_evaluated_only_where_it_is_allowed(wanted: SourceSpec) -> None:
    paths = ("/a", "/a.jsonnet", "/a.jSONNET")
    async with serving(dict.fromkeys(paths, PROGRAM)) as server:
        here = SourceSpec(wanted.name, wanted.encoding, wanted.text, wanted.url.format(address=server.address))
        with pytest.raises(EncodingInvalid, match=r"invalid encoding: jsonnet; .*PKGER_ALLOW_JSONNET=1"):
            await STRICT.gather([SourceSpec(url=f"{server.address}/a"), here])
        assert server.requests == []
        [source] = await OPEN.gather([here])
    assert source == Source(wanted.name or here.url, '[{"kind": "Label"}]', Encoding.JSON, True)
    assert [item.kind for item in read_sources([source])] == ["Label"]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("[1,", r"a\.jsonnet:1:4: "),
        ('[importstr "/etc/passwd"]', r'a\.jsonnet:1:2: cannot import "/etc/passwd": only a program in a local file'),
        ("[" * 6000 + "]" * 6000, r"a\.jsonnet:1:\d+: lists, objects or other expressions are nested too deeply"),
        ("std.range(1, 1e9)", r"a\.jsonnet: exceeds the limit for bytes of memory for evaluation of 100,663,296"),
        ("[std.foldl(function(s, i) s + s, std.range(1, 16), 'xx')]", "limit for bytes of evaluated JSON of 20,000"),
    ],
    ids=["an error", "a file of this machine", "a deep literal", "memory", "a long result"],
)
async def test_an_invalid_program_is_reported(program: str, expected: str) -> None:
    gatherer = Gatherer(Bounds(bytes=20_000, memory=96 * 2**20), allow_jsonnet=True)
    with pytest.raises((SourceUndecodable, SourceTooLarge), match=expected):
        await gatherer.gather([SourceSpec("a.jsonnet", text=program)])


async def test_a_program_that_does_not_end_is_reported() -> None:
    gatherer = Gatherer(Bounds(seconds=0.4), allow_jsonnet=True)
    with pytest.raises(SourceTooLarge, match=r"a\.jsonnet: exceeds the limit for seconds of evaluation of 1"):
        await gatherer.gather([SourceSpec("a.jsonnet", text="local f(x) = f(x) tailstrict; f(1)")])


async def test_a_program_can_give_more_levels_than_are_read() -> None:
    program = "std.foldl(function(inner, i) [inner], std.range(1, 200), [])"
    sources = await OPEN.gather([SourceSpec("a.jsonnet", text=program)])
    with pytest.raises(SourceTooLarge, match=r"a\.jsonnet: exceeds the limit for nesting depth of 100"):
        read_sources(sources)


async def test_all_sources_together_keep_the_bound_on_text() -> None:
    async with serving({"/a": "x" * 400, "/b": "x" * 400}) as server:
        gatherer = Gatherer(Bounds(bytes=1000), allow_jsonnet=True, fetcher=LOCAL)
        urls = [SourceSpec(url=f"{server.address}{path}") for path in ("/a", "/b")]
        assert len(await gatherer.gather([*urls, SourceSpec(text="x" * 200)])) == 3
        for more in (SourceSpec(text="x" * 201), SourceSpec("p.jsonnet", text='[std.repeat("x", 200)]')):
            with pytest.raises(SourceTooLarge, match="bytes in all sources together of 1,000"):
                await gatherer.gather([*urls, more])


async def test_the_first_error_in_the_order_of_the_sources_is_raised_at_once() -> None:
    async with serving({"/drip": drip}) as server:
        missing, second = f"{server.address}/missing", SourceSpec("b.jsonnet", text="[")
        for wanted in (
            [SourceSpec(url=missing), second],
            [SourceSpec(text=YAML), SourceSpec(url=missing), SourceSpec(url=f"{server.address}/drip")],
        ):
            with pytest.raises(SourceUnreadable) as caught:
                await OPEN.gather(wanted)
            assert caught.value.metadata["source"] == missing


async def test_few_addresses_are_fetched_at_the_same_time() -> None:
    now = most = 0
    enough = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == FETCHES:
            enough.set()
        await enough.wait()
        now -= 1
        return web.Response(body=YAML)

    async with serving({"/a": answer}) as server:
        assert len(await STRICT.gather([SourceSpec(url=f"{server.address}/a")] * 3 * FETCHES)) == 3 * FETCHES
    assert most == FETCHES


async def test_more_programs_than_are_evaluated_at_the_same_time_are_evaluated() -> None:
    programs = [SourceSpec("a.jsonnet", text=f"[{number}]") for number in range(2 * EVALUATIONS + 1)]
    assert [source.text for source in await OPEN.gather(programs)] == [f"[{number}]" for number in range(5)]


async def test_the_settings_say_what_is_allowed(tmp_path: Path) -> None:
    program = SourceSpec("a.jsonnet", text=PROGRAM)
    async with serving({"/": YAML}) as server:
        address = SourceSpec(url=server.address)
        for wanted, variable in ((program, "PKGER_ALLOW_JSONNET"), (address, "PKGER_ALLOW_PRIVATE_ADDRESSES")):
            assert len(await Gatherer.of(load({variable: "1"})).gather([wanted])) == 1
            with pytest.raises(PkgerError, match=f"{variable}=1"):
                await Gatherer.of(load({})).gather([wanted])
    assert Gatherer.of(load({"PKGER_MAX_BYTES": "5"})).bounds == Bounds(bytes=5)
