"""The contract of every driver (driver.proto): traits, reads and writes."""

import asyncio
from dataclasses import replace

import pytest

from services.core.errors import KindUnsupported, RequestInvalid, TokenStale
from services.core.model import Identity, NameUniqueness, PlatformTraits
from services.rpc.parts import MAX_PART_BYTES
from tests.drivers.cases import only_kinds, only_platforms
from tests.drivers.client import (
    CONTENT_REFUSED,
    KIND_UNSUPPORTED,
    NAME_TAKEN,
    NOT_FOUND,
    DriverClient,
    attach,
    create,
    delete,
    detach,
    done,
    ends,
    put_secret,
    set_spec,
    spec,
    update,
    wanted,
)
from tests.drivers.platforms import PlatformUnderTest, Sample

INVALID_SPECS = (
    *("", "{", "[]", "1", "null", '"name"', "{}", '{"name":1}', '{"name":null}', '{"name":""}'),
    "[" * 2000,
)


async def test_a_platform_names_its_kinds_sorted_and_its_limits(driver: DriverClient) -> None:
    described = await driver.describe_raw()
    kinds = [kind.kind for kind in described.kinds]
    assert kinds
    assert kinds == sorted(set(kinds))
    assert described.platform
    assert described.version
    assert described.max_batch_size > 0
    assert described.max_concurrency > 0


async def test_the_traits_by_which_the_suite_chooses_its_tests_are_described(
    driver: DriverClient, traits: PlatformTraits
) -> None:
    assert replace(await driver.describe(), version="") == replace(traits, version="")


async def test_labels_come_before_what_they_are_attached_to(traits: PlatformTraits) -> None:
    stages = [kind.stage for kind in traits.kinds.values() if kind.labelled]
    assert all(traits.kinds["Label"].stage < stage for stage in stages)


async def test_special_paths_are_json_pointers(traits: PlatformTraits) -> None:
    for kind in traits.kinds.values():
        for path in (*kind.immutable_paths, *kind.set_paths):
            assert path.startswith("/")


async def test_only_kinds_whose_names_may_repeat_have_a_costly_listing(traits: PlatformTraits) -> None:
    costly = [kind for kind in traits.kinds.values() if kind.costly_listing]
    assert {kind.name_uniqueness for kind in costly} <= {NameUniqueness.NONE}


async def test_a_created_resource_is_read_and_listed_as_it_was_written(
    driver: DriverClient, sample: Sample, kind: str
) -> None:
    wanted = sample(kind, "first", "what it is")
    [result] = await driver.mutate(create(kind, wanted, "key"))
    [made] = await driver.listing(kind)
    assert (made.kind, made.id) == (kind, result.done.id)
    assert made.id
    assert spec(made) == wanted
    assert made.display_name == "first"
    assert list(made.label_ids) == []
    assert await driver.read((kind, made.id)) == [made]


async def test_a_result_has_the_spec_only_if_it_differs_from_the_sent_text(
    driver: DriverClient, sample: Sample, kind: str
) -> None:
    """The engine takes the sent spec for the live one, unless the result has another."""
    sent = create(kind, sample(kind, "first", ""), "key")
    [made] = await driver.mutate(sent)
    rewrite = update(kind, made.done.id, sample(kind, "renamed", "new"))
    spaced = update(kind, made.done.id, {})
    spaced.update.spec_json = rewrite.update.spec_json.replace(":", ": ", 1)
    results = [made]
    for mutation in (rewrite, spaced):
        results += await driver.mutate(mutation)
        [held] = await driver.listing(kind)
        assert (results[-1].done.observed_spec_json or mutation.update.spec_json) == held.spec_json
    assert [result.done.id for result in results] == [held.id, "", ""]
    assert [result.done.observed_spec_json for result in results[:2]] == ["", ""]


async def test_an_update_writes_the_whole_spec(driver: DriverClient, sample: Sample, kind: str) -> None:
    [made] = await driver.made(create(kind, sample(kind, "first", "old"), "key"))
    wanted = sample(kind, "renamed", "new")
    [written] = await driver.made(update(kind, made.id, wanted))
    assert written.id == made.id
    assert spec(written) == wanted
    assert written.display_name == "renamed"
    assert await driver.listing(kind) == [written]


async def test_an_update_of_a_missing_resource_is_rejected(
    driver: DriverClient, platform: PlatformUnderTest, sample: Sample, kind: str
) -> None:
    assert await driver.refusal(update(kind, platform.missing_id, sample(kind, "x", ""))) == NOT_FOUND
    assert await driver.listing(kind) == []


async def test_a_deleted_resource_is_gone_and_deleting_it_again_succeeds(
    driver: DriverClient, sample: Sample, kind: str
) -> None:
    [made] = await driver.made(create(kind, sample(kind, "first", ""), "key"))
    for _ in range(2):
        [result] = await driver.mutate(delete(kind, made.id))
        assert result == done()
        assert await driver.read((kind, made.id)) == [None]
        assert await driver.listing(kind) == []


async def test_reading_answers_each_id_in_the_order_of_the_request(
    driver: DriverClient, platform: PlatformUnderTest, sample: Sample, kind: str
) -> None:
    first, second = await driver.made(
        create(kind, sample(kind, "a", ""), "a"), create(kind, sample(kind, "b", ""), "b")
    )
    asked = [second.id, platform.missing_id, first.id, second.id]
    assert await driver.read(*((kind, id_) for id_ in asked)) == [second, None, first, second]
    assert await driver.read() == []


async def test_an_id_counts_in_its_own_kind_only(driver: DriverClient, sample: Sample) -> None:
    [label] = await driver.made(create("Label", sample("Label", "a", ""), "key"))
    assert await driver.read(("Bucket", label.id)) == [None]
    assert await driver.refusal(update("Bucket", label.id, sample("Bucket", "b", ""))) == NOT_FOUND
    assert ends(await driver.mutate(delete("Bucket", label.id))) == ["done"]
    assert await driver.listing("Label") == [label]


async def test_organizations_do_not_see_each_other(driver: DriverClient, sample: Sample, kind: str) -> None:
    wanted = sample(kind, "same name", "")
    [ours] = await driver.made(create(kind, wanted, "ours"), org="ours")
    assert await driver.listing(kind, org="theirs") == []
    assert await driver.read((kind, ours.id), org="theirs") == [None]
    assert await driver.refusal(update(kind, ours.id, wanted), org="theirs") == NOT_FOUND
    assert ends(await driver.mutate(delete(kind, ours.id), org="theirs")) == ["done"]
    [theirs] = await driver.made(create(kind, wanted, "theirs"), org="theirs")
    assert theirs.id != ours.id
    assert await driver.listing(kind, org="ours") == [ours]


async def test_a_listing_has_whole_kinds_sorted_by_kind_and_id(
    driver: DriverClient, traits: PlatformTraits, sample: Sample
) -> None:
    kinds = sorted({"Label", "Bucket", "Task"} & traits.kinds.keys(), reverse=True)
    made = await driver.made(
        *(create(kind, sample(kind, str(n), ""), f"{kind}{n}") for n in range(9) for kind in kinds)
    )
    listed = await driver.listing(*kinds, *kinds)
    assert listed == sorted(made, key=lambda resource: (resource.kind, resource.id))
    assert await driver.listing("Label") == [resource for resource in listed if resource.kind == "Label"]


async def test_a_listing_of_no_kinds_is_empty(driver: DriverClient, sample: Sample) -> None:
    await driver.made(create("Label", sample("Label", "a", ""), "key"))
    assert await driver.listing() == []


@pytest.mark.large
async def test_a_listing_of_many_comes_in_chunks(driver: DriverClient, traits: PlatformTraits, sample: Sample) -> None:
    size = traits.max_batch_size
    made = []
    for start in range(0, 1100, size):
        numbers = range(start, min(start + size, 1100))
        made += await driver.made(*(create("Task", sample("Task", f"task {n}", "☂" * n), str(n)) for n in numbers))
    chunks = await driver.chunks("Task")
    assert len(chunks) > 1
    assert all(chunk.resources for chunk in chunks)
    assert max(chunk.ByteSize() for chunk in chunks) <= MAX_PART_BYTES
    assert [resource for chunk in chunks for resource in chunk.resources] == sorted(made, key=lambda task: task.id)


async def test_reading_a_kind_that_the_platform_lacks_is_an_error(driver: DriverClient) -> None:
    with pytest.raises(KindUnsupported) as listing:
        await driver.listing("Label", "Spaceship")
    with pytest.raises(KindUnsupported) as reading:
        await driver.read(("Spaceship", "1"))
    assert listing.value.metadata["kind"] == reading.value.metadata["kind"] == "Spaceship"


@only_platforms(lambda platform: not platform.traits.holds_secrets)
async def test_a_platform_without_secrets_refuses_them(driver: DriverClient) -> None:
    [result] = await driver.mutate(put_secret("k", "canary-8a1f"))
    assert result.rejected.reason == KIND_UNSUPPORTED
    assert "canary-8a1f" not in str(result)
    with pytest.raises(KindUnsupported):
        await driver.secret_keys()


async def test_changing_a_kind_that_the_platform_lacks_is_rejected(
    driver: DriverClient, platform: PlatformUnderTest
) -> None:
    missing = platform.missing_id
    for mutation in (
        create("Spaceship", {"name": "x"}, "key"),
        update("Spaceship", missing, {"name": "x"}),
        delete("Spaceship", missing),
        attach("Spaceship", missing, missing),
        detach("Spaceship", missing, missing),
    ):
        assert await driver.refusal(mutation) == KIND_UNSUPPORTED


async def test_an_invalid_spec_is_rejected(driver: DriverClient, sample: Sample, kind: str) -> None:
    [made] = await driver.made(create(kind, sample(kind, "first", ""), "first"))
    faulty = []
    for text in INVALID_SPECS:
        for mutation in (create(kind, {}, f"faulty {text}"), update(kind, made.id, {})):
            set_spec(mutation, text)
            faulty.append(mutation)
    results = await driver.mutate(*faulty)
    assert [result.rejected.reason for result in results] == [CONTENT_REFUSED] * len(faulty)
    assert all(result.rejected.message for result in results)
    assert await driver.listing(kind) == [made]


async def test_an_immutable_path_cannot_be_changed(
    driver: DriverClient, traits: PlatformTraits, platform: PlatformUnderTest
) -> None:
    """If the driver ignored or accepted it, a plan would update a resource that it has to replace."""
    immutable = {(kind.kind, path) for kind in traits.kinds.values() for path in kind.immutable_paths}
    assert platform.immutable_change.keys() == immutable
    for (kind, _), (before, after) in platform.immutable_change.items():
        [made] = await driver.made(create(kind, before, "key"))
        assert await driver.refusal(update(kind, made.id, after)) == CONTENT_REFUSED
        assert await driver.read((kind, made.id)) == [made]


async def test_a_rejected_item_stops_no_other_and_results_keep_their_order(
    driver: DriverClient, platform: PlatformUnderTest, sample: Sample
) -> None:
    [old] = await driver.made(create("Label", sample("Label", "old", ""), "old"))
    results = await driver.mutate(
        update("Label", platform.missing_id, sample("Label", "x", "")),
        create("Label", sample("Label", "new", ""), "new"),
        create("Spaceship", {"name": "x"}, "x"),
        delete("Label", old.id),
        create("Label", {"name": ""}, "empty"),
    )
    assert ends(results) == ["rejected", "done", "rejected", "done", "rejected"]
    assert [label.id for label in await driver.listing("Label")] == [results[1].done.id]


async def test_an_empty_batch_is_answered(driver: DriverClient) -> None:
    assert await driver.mutate() == []


async def test_a_batch_may_be_as_large_as_described_and_no_larger(
    driver: DriverClient, traits: PlatformTraits, sample: Sample
) -> None:
    size = traits.max_batch_size
    creates = [create("Task", sample("Task", str(n), ""), str(n)) for n in range(size + 1)]
    with pytest.raises(RequestInvalid):
        await driver.mutate(*creates)
    assert await driver.listing("Task") == []
    assert len(await driver.made(*creates[:size])) == size


@only_kinds(lambda kind: kind.identity is Identity.NATIVE)
async def test_a_repeated_create_returns_the_resource_as_it_is_now(
    driver: DriverClient, sample: Sample, kind: str
) -> None:
    """The engine sends a create again when its first outcome is unknown (docs/reference/engine.md, "Recovery")."""
    sent = create(kind, sample(kind, "first", ""), "key")
    [made] = await driver.made(sent)
    assert await driver.made(sent) == [made]
    [written] = await driver.made(update(kind, made.id, sample(kind, "renamed", "new")))
    assert await driver.mutate(sent, sent) == [done(made.id, written.spec_json, replayed=True)] * 2
    assert await driver.listing(kind) == [written]
    await driver.mutate(delete(kind, made.id))
    assert await driver.refusal(sent) == NOT_FOUND
    assert await driver.listing(kind) == []


@only_kinds(lambda kind: kind.identity is Identity.NATIVE)
async def test_a_key_sent_twice_in_one_batch_makes_one_resource(
    driver: DriverClient, sample: Sample, kind: str
) -> None:
    sent = create(kind, sample(kind, "first", ""), "key")
    first, again = await driver.made(sent, sent)
    assert first == again
    assert await driver.listing(kind) == [first]


async def test_a_unique_name_has_one_holder(
    driver: DriverClient, traits: PlatformTraits, sample: Sample, kind: str
) -> None:
    made = await driver.made(
        create(kind, sample(kind, "taken", "one"), "1"), create(kind, sample(kind, "other", "two"), "2")
    )
    again, rename = (
        create(kind, sample(kind, "taken", "three"), "3"),
        update(kind, made[1].id, sample(kind, "taken", "")),
    )
    if traits.kinds[kind].name_uniqueness is NameUniqueness.NONE:
        assert ends(await driver.mutate(again, rename)) == ["done", "done"]
    else:
        assert await driver.refusal(again) == NAME_TAKEN
        assert await driver.refusal(rename) == NAME_TAKEN
        assert await driver.read(*((kind, resource.id) for resource in made)) == made


_CASE = {NameUniqueness.CASE_INSENSITIVE, NameUniqueness.TRIMMED_CASE_INSENSITIVE}
_SPACE = {NameUniqueness.TRIMMED_CASE_INSENSITIVE}


NAMES: list[tuple[str, str, set[NameUniqueness]]] = [
    ("Mixed", "mIXED", _CASE),
    ("STRAßE", "straße", _CASE),
    ("MASSE", "maße", set()),
    ("ΣΑΣ", "σασ", _CASE),
    ("spaces", " spaces ", _SPACE),
    ("\ttabs", "tabs\r\n", _SPACE),
    ("wide", "\u00a0Wide\u3000", _SPACE),
    ("inner", "in ner", set()),
    ("control", "control\x1c", set()),
    ("invisible", "invisible\u200b", set()),
]
"""Two names, and the rules under which they are one name."""


async def test_names_that_differ_in_case_or_white_space_are_compared_as_described(
    driver: DriverClient, traits: PlatformTraits, sample: Sample, kind: str
) -> None:
    """A plan compares names as the platform declares it."""
    rule = traits.kinds[kind].name_uniqueness
    refusing = await refused_names(
        driver, sample, kind, *(name for first, second, _ in NAMES for name in (first, second))
    )
    pairs = [pair for pair in NAMES if not refusing.intersection(pair[:2])]
    firsts = [create(kind, sample(kind, first, ""), first) for first, _, _ in pairs]
    others = [create(kind, sample(kind, f"other {first}", ""), f"other {first}") for first, _, _ in pairs]
    made = (await driver.made(*firsts, *others))[len(pairs) :]
    renames = [update(kind, other.id, sample(kind, pair[1], "")) for other, pair in zip(made, pairs, strict=True)]
    again = [create(kind, sample(kind, second, ""), second) for _, second, _ in pairs]
    results = await driver.mutate(*renames, *again)
    for (first, second, ignoring), *both in zip(pairs, results, results[len(pairs) :], strict=False):
        if rule in ignoring:
            assert [result.rejected.reason for result in both] == [NAME_TAKEN, NAME_TAKEN], (first, second)
        else:
            # One of the two has the name before the other; the contract does not define which one.
            expected = ["done", "done" if rule is NameUniqueness.NONE else "rejected"]
            assert sorted(map(str, ends(both))) == expected, (first, second)


async def refused_names(driver: DriverClient, sample: Sample, kind: str, *names: str) -> set[str]:
    """Those of *names* whose content the platform refuses, both in a preparation and in a write."""
    creates = [create(kind, sample(kind, name, ""), f"refused {name}") for name in names]
    prepared = await driver.prepared(*map(wanted, creates))
    refused = {name: each for name, each, (_, refusal) in zip(names, creates, prepared, strict=True) if refusal}
    results = await driver.mutate(*refused.values())
    assert {result.rejected.reason for result in results} <= {CONTENT_REFUSED}
    return set(refused)


async def test_a_resource_may_keep_its_name_or_change_its_spelling(
    driver: DriverClient, sample: Sample, kind: str
) -> None:
    """Names are stored as they are prepared, and not as they are compared."""
    spellings = ("name", "NAME", " Name ")
    refusing = await refused_names(driver, sample, kind, *spellings)
    for changed in [spelling for spelling in spellings if spelling not in refusing]:
        [made] = await driver.made(create(kind, sample(kind, "name", "old"), f"key of {changed}"))
        change = update(kind, made.id, sample(kind, changed, "new"))
        [written] = await driver.made(change)
        assert spec(written) == await driver.would_hold(change)
        assert await driver.listing(kind) == [written]
        await driver.mutate(delete(kind, made.id))


async def test_a_released_name_can_be_taken(driver: DriverClient, sample: Sample, kind: str) -> None:
    first, second = await driver.made(
        create(kind, sample(kind, "a", ""), "1"), create(kind, sample(kind, "b", ""), "2")
    )
    await driver.mutate(delete(kind, first.id))
    await driver.made(update(kind, second.id, sample(kind, "c", "")))
    await driver.made(create(kind, sample(kind, "a", ""), "3"), create(kind, sample(kind, "b", ""), "4"))
    assert sorted(spec(resource)["name"] for resource in await driver.listing(kind)) == ["a", "b", "c"]


async def test_one_of_two_creates_in_a_batch_gets_a_unique_name(
    driver: DriverClient, traits: PlatformTraits, sample: Sample, kind: str
) -> None:
    wanted = sample(kind, "wanted", "")
    results = await driver.mutate(create(kind, wanted, "1"), create(kind, wanted, "2"))
    unique = traits.kinds[kind].name_uniqueness is not NameUniqueness.NONE
    assert sorted(map(str, ends(results))) == (["done", "rejected"] if unique else ["done", "done"])
    assert len(await driver.listing(kind)) == (1 if unique else 2)


@only_kinds(lambda kind: kind.name_uniqueness is not NameUniqueness.NONE)
async def test_concurrent_batches_keep_names_unique(driver: DriverClient, sample: Sample, kind: str) -> None:
    names = [f"name {n}" for n in range(20)]
    batches = [[create(kind, sample(kind, name, ""), f"{name} {n}") for name in names] for n in range(8)]
    answers = await asyncio.gather(*(driver.mutate(*batch) for batch in batches))
    assert sum(ends(results).count("done") for results in answers) == len(names)
    assert sorted(spec(resource)["name"] for resource in await driver.listing(kind)) == sorted(names)


@only_platforms(lambda platform: platform.traits.fences)
@pytest.mark.parametrize("transient", [False, True])
async def test_an_old_fencing_token_is_refused_without_effect(
    driver: DriverClient, sample: Sample, transient: bool
) -> None:
    """
    A process that sleeps beyond the end of its lease must not write after its successor (docs/reference/engine.md,
    "Leases and fencing").
    """
    label = create("Label", sample("Label", "a", ""), "1")
    [made] = await driver.mutate(label, fence=("stack", 7), transient=transient)
    late = [create("Label", sample("Label", "b", ""), "2"), delete("Label", made.done.id)]
    with pytest.raises(TokenStale) as error:
        await driver.mutate(*late, fence=("stack", 6), transient=transient)
    assert error.value.metadata == {"scope": "stack", "token": "6", "newest": "7"}
    with pytest.raises(TokenStale):
        await driver.mutate(fence=("stack", 6))
    assert [label.id for label in await driver.listing("Label")] == [made.done.id]


@only_platforms(lambda platform: platform.traits.fences)
async def test_a_batch_without_mutations_shows_its_token(driver: DriverClient, sample: Sample) -> None:
    """An applier that resumes an operation shows its token first, so that no older write follows its reads."""
    assert await driver.mutate(fence=("stack", 7)) == []
    with pytest.raises(TokenStale):
        await driver.mutate(create("Label", sample("Label", "a", ""), "1"), fence=("stack", 6))
    assert await driver.listing("Label") == []


@only_platforms(lambda platform: platform.traits.fences)
async def test_tokens_apply_within_their_scope_and_the_newest_stays_valid(driver: DriverClient, sample: Sample) -> None:
    fences = [("one", 5), ("one", 5), ("two", 1), ("one", 9), ("one", 9), ("two", 2), None]
    for n, fence in enumerate(fences):
        assert ends(await driver.mutate(create("Task", sample("Task", str(n), ""), str(n)), fence=fence)) == ["done"]
    with pytest.raises(TokenStale):
        await driver.mutate(fence=("one", 8))
    with pytest.raises(TokenStale):
        await driver.mutate(fence=("two", 1))


@only_platforms(lambda platform: platform.traits.fences)
@pytest.mark.parametrize("token", [2**62 + 1, 2**63 - 1])
async def test_a_fencing_token_that_is_too_high_is_refused_and_not_remembered(
    driver: DriverClient, sample: Sample, token: int
) -> None:
    """After a token that is the highest number of a store, no operation could have a higher one."""
    label = create("Label", sample("Label", "a", ""), "1")
    for batch in ([], [label]):
        with pytest.raises(RequestInvalid) as error:
            await driver.mutate(*batch, fence=("one", token))
        assert error.value.metadata["field"] == "fence.token"
    assert await driver.listing("Label") == []
    assert await driver.show_token("one", 5, "operation-a") is None
    assert await driver.show_token("one", 2**62, "operation-b") == (5, "operation-a")


@only_platforms(lambda platform: platform.traits.fences)
async def test_a_shown_token_returns_the_highest_before_it(driver: DriverClient, sample: Sample) -> None:
    """
    A restored store knows only lower tokens, and its next operation detects that (docs/reference/engine.md, "Restored
    stores").
    """
    assert await driver.show_token("one", 5, "operation-a") is None
    assert await driver.show_token("one", 5, "operation-a") is None
    assert await driver.show_token("one", 9, "operation-b") == (5, "operation-a")
    await driver.mutate(create("Label", sample("Label", "a", ""), "1"), fence=("one", 9))
    # The first response may have been lost.
    assert await driver.show_token("one", 9, "operation-b") == (5, "operation-a")
    assert await driver.show_token("two", 7, "operation-c") is None
    with pytest.raises(TokenStale) as error:
        await driver.show_token("one", 8, "operation-a")
    assert error.value.metadata["newest"] == "9"
    # Tokens are seen with mutations, too.
    await driver.mutate(create("Label", sample("Label", "b", ""), "2"), fence=("one", 12))
    assert await driver.show_token("one", 13, "operation-d") == (12, "by 12")
