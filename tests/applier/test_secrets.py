"""Secrets of an apply: written first, undone as far as possible, and shown nowhere."""

import base64
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pkger.applier.v1 import applier_pb2
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2

from applier_svc.execution.secrets import Secrets
from planner_svc.secrets import secret_steps
from services.core.errors import PkgerError, PlanStale, RequestInvalid, TokenStale
from services.core.model import Key, Step, Verb
from services.engine.effects import effect_of, inverse_of
from services.engine.ids import ResourceIds
from services.engine.outcome import Done, Failed, Outcome, RejectionReason, Skipped, Unknown
from services.rpc.convert.drivers import mutation_to_pb
from services.rpc.request_digest import content_digest
from tests.applier.faulty import CallFault, ItemFault, Memory
from tests.applier.packages import FRESH, MIXED
from tests.applier.world import (
    BLOCKED,
    ROLLED_BACK,
    SUCCEEDED,
    Case,
    World,
    check,
    end,
    lines,
    put_secrets,
)
from tests.apply.packages import an_object, text
from tests.engine.plans import a_plan, progress_of
from tests.samples import slow

CANARY = "canary-8a1f"
REFUSAL = RejectionReason.CONTENT_REFUSED
LABEL = text(an_object("Label", "red", "red"))
REFUSED = text(an_object("Label", "red", "red"), an_object("Bucket", "reserved", "_system"))
"""A bucket that the platform rejects, after its label and the secrets were written."""


CREATE, UPDATE = secret_steps(["a", "b"], {"b"})
OTHER = Step(0, 1, Verb.CREATE, Key("Label", "l"))
PLAN = a_plan(CREATE, UPDATE, OTHER, stages=("secrets", "labels"))


@pytest.mark.parametrize(
    ("value", "said", "masked"),
    [
        ("hunter2", "wrong: hunter2, hunter2!", "wrong: [secret], [secret]!"),
        ("hunter2\n", "wrong: hunter2", "wrong: [secret]"),
        ("two\nlines", r"wrong: 'two\nlines'", "wrong: '[secret]'"),
        ('quo"te', r'{"value": "quo\"te"}', '{"value": "[secret]"}'),
        ("ünï☂", r"wrong: \u00fcn\u00ef\u2602", "wrong: [secret]"),
        ("a b/c", "https://example.com/?v=a%20b%2Fc", "https://example.com/?v=[secret]"),
        ("o", "no", "n[secret]"),
        ("[secret]", "wrong: [secret]", "wrong: [secret]"),
        ("\0", "wrong: \0", "wrong: [secret]"),
        ("x" * 65_536, "x" * 65_536, "[secret]"),
        (" ", "no way", "no[secret]way"),
        ("ünï☂", r"wrong: \u00FCn\u00EF\u2602", "wrong: [secret]"),
        ("a/b", r"{'v': 'a\/b'}", "{'v': '[secret]'}"),
        ("ä b/c", "?v=%c3%a4%20b%2fc", "?v=[secret]"),
        ("a b/c", "?v=a+b%2Fc", "?v=[secret]"),
        ("it's (so)", "?v=it's%20(so)", "?v=[secret]"),
        ("<a&'b'>", "&lt;a&amp;&#39;b&#39;&gt; &lt;a&amp;&#x27;b&#x27;&gt;", "[secret] [secret]"),
        ("hunter2!", "aHVudGVyMiE= YTpodW50ZXIyIQ== 68756E7465723221", "[secret] YTp[secret] [secret]"),
        ("sk-0123456789abcdef", "key sk-0123456789a... and ...456789abcdef", "key [secret]... and ...[secret]"),
    ],
)
def test_a_value_is_masked_in_every_spelling(value: str, said: str, masked: str) -> None:
    assert Secrets({"k": value, "other": "other value"}).masked(said) == masked


@given(
    value=st.text(min_size=8, max_size=40).filter(lambda text: len(text.strip()) >= 8),
    before=st.binary(max_size=5),
    behind=st.binary(max_size=5),
)
def test_a_value_inside_an_encoded_text_is_masked(value: str, before: bytes, behind: bytes) -> None:
    octets = value.encode()
    code = base64.b64encode(before + octets + behind).decode()
    left = Secrets({"k": value}).masked(code)
    # Except for the characters at its ends, which hold bits of the surrounding text.
    assert "[secret]" in left
    assert len(left) - len("[secret]") <= len(base64.b64encode(before)) + len(base64.b64encode(behind)) + 8
    assert octets.hex() not in Secrets({"k": value}).masked(f"{before.hex()}{octets.hex()}{behind.hex()}")


def test_of_two_values_the_longer_one_is_masked_whole() -> None:
    assert Secrets({"a": "ab", "b": "abcd"}).masked("abcd ab") == "[secret] [secret]"


def test_nothing_is_masked_without_values() -> None:
    assert Secrets().masked("all of it") == "all of it"


def test_messages_of_drivers_are_withheld_once_the_values_are_lost() -> None:
    gone = Secrets(are_lost=True)
    error: PkgerError = TokenStale(CANARY, 1, 2)
    gone.mask_error(error)
    changed = gone.masked_outcome(Failed(CANARY, RejectionReason.CHANGED))
    texts = [gone.masked(CANARY), str(gone.masked_outcome(Failed(CANARY))), f"{error} {error.metadata}", str(changed)]
    assert all("might repeat a secret" in each and CANARY not in each for each in texts)
    assert isinstance(changed, Failed)
    assert changed.message.startswith("changed; ")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Done(CANARY), Done(CANARY)),
        (Failed(f"no {CANARY}", REFUSAL), Failed("no [secret]", REFUSAL)),
        (Unknown(CANARY), Unknown("[secret]")),
        (Skipped(CANARY), Skipped("[secret]")),
    ],
)
def test_messages_of_drivers_are_masked(outcome: Outcome, expected: Outcome) -> None:
    assert Secrets({"k": CANARY}).masked_outcome(outcome) == expected


def test_an_error_is_masked_in_its_text_and_its_metadata() -> None:
    error: PkgerError = TokenStale(CANARY, 1, 2)
    Secrets({"k": CANARY}).mask_error(error)
    assert CANARY not in f"{error!r} {error} {error.metadata}"
    assert error.metadata["scope"] == "[secret]"


def test_a_value_is_not_shown_when_secrets_are_printed() -> None:
    assert repr(Secrets({"b": CANARY, "a": CANARY})) == "Secrets(a, b)"


@pytest.mark.parametrize(("value", "problem"), [("", "it is empty"), ("x" * 65_537, "it has 65,537")])
def test_an_invalid_value_is_refused_and_not_shown(value: str, problem: str) -> None:
    with pytest.raises(RequestInvalid, match=problem) as caught:
        Secrets({"good": CANARY, "k": value})
    assert CANARY not in str(caught.value)
    assert "the value of 'k'" in str(caught.value)


def test_a_secret_becomes_the_mutation_of_its_verb() -> None:
    secrets, ids = Secrets({"a": "1", "b": "2"}), ResourceIds(PLAN)
    create, update = map(effect_of, (CREATE, UPDATE))
    put = [driver_pb2.PutSecret(key="a", value="1"), driver_pb2.PutSecret(key="b", value="2")]
    assert [
        mutation_to_pb(each, each.sending(ids), "", secrets.value(each)).put_secret for each in (create, update)
    ] == put
    back = inverse_of(create)
    deletion = mutation_to_pb(back, back.sending(ids), "", Secrets().value(back))
    assert deletion.delete_secret == driver_pb2.DeleteSecret(key="a")


@pytest.mark.parametrize(
    ("done", "values", "lost"),
    [
        ({}, {"a": "1", "b": "2"}, ""),
        ({}, {}, "create Secret 'a'"),
        ({0: Done("a")}, {}, "update Secret 'b'"),
        ({0: Unknown("?"), 1: Done("b")}, {}, "create Secret 'a'"),
        ({0: Done("a"), 1: Done("b")}, {}, ""),
        ({0: Done("a"), 1: Done("b"), 2: Unknown("?")}, {}, ""),
    ],
)
def test_an_operation_cannot_be_resumed_without_the_values_to_write(
    done: dict[int, Outcome], values: dict[str, str], lost: str
) -> None:
    problem = Secrets(values).lost(progress_of(PLAN, done))
    assert problem.startswith(lost)
    assert bool(problem) == bool(lost)
    assert not problem or problem.endswith("apply again, with the secrets")


async def held(case: Case) -> list[str]:
    return await case.services.secret_keys(case.org)


def last_value(case: Case, key: str) -> str:
    """The value in the last write of a secret that the platform received."""
    return [each.put_secret.value for each in case.driver.sent if each.put_secret.key == key][-1]


async def test_given_secrets_are_written_first_and_others_are_kept(faulty: World) -> None:
    case = faulty.case()
    await put_secrets(case, {"theirs": "1", "ours": "2"})
    events = await case.apply(LABEL, secrets={"ours": CANARY, "new": "other"})
    assert lines(events) == [
        "accepted 3 steps",
        "stage 0 secrets: 2",
        ["done: create Secret new", "done: update Secret ours"],
        "stage 1 labels: 1",
        ["done: create Label red"],
        ["SUCCEEDED", "1 creates, 2 secrets"],
    ]
    assert await held(case) == ["new", "ours", "theirs"]
    assert last_value(case, "ours") == CANARY
    assert [each.WhichOneof("change") for each in case.driver.sent] == ["put_secret", "put_secret", "create"]


async def test_a_secret_is_written_again_each_time_it_is_given(faulty: World) -> None:
    case = faulty.case()
    first = end(await case.apply(LABEL, secrets={"k": CANARY}))
    second = end(await case.apply(LABEL, secrets={"k": CANARY}))
    assert (first.state, second.state) == (SUCCEEDED, SUCCEEDED)
    assert not second.no_change
    assert end(await case.apply(LABEL)).no_change


async def test_the_plan_that_was_shown_is_the_one_that_runs(faulty: World) -> None:
    case = faulty.case()
    shown = await case.services.plan(LABEL, stack="s", org=case.org, secret_keys=["k"])
    with pytest.raises(PlanStale):
        await case.apply(LABEL, digest=shown.digest)
    with pytest.raises(PlanStale):
        await case.apply(LABEL, digest=shown.digest, secrets={"other": CANARY})
    assert not case.driver.sent
    events = await case.apply(LABEL, digest=shown.digest, secrets={"k": CANARY})
    assert events.plan.digest == shown.digest
    assert await held(case) == ["k"]


@pytest.mark.parametrize("secrets", [{"k": ""}, {"": CANARY}, {"a\n": CANARY}, {"k": "x" * 65_537}])
async def test_what_cannot_be_a_secret_stops_an_apply_before_anything_is_written(
    faulty: World, secrets: dict[str, str]
) -> None:
    case = faulty.case()
    with pytest.raises(RequestInvalid) as caught:
        await case.apply(LABEL, secrets=secrets)
    assert CANARY not in f"{caught.value} {caught.value.metadata}"
    assert not case.driver.sent


async def test_when_a_later_step_fails_created_secrets_go_and_overwritten_ones_are_named(faulty: World) -> None:
    case = faulty.case()
    await put_secrets(case, {"ours": "2", "theirs": "1"})
    before = await case.look()
    events = await case.apply(REFUSED, secrets={"ours": CANARY, "new": "other"})
    check(before, events, await case.look(), before.content)
    finished = end(events)
    assert finished.state == ROLLED_BACK
    assert finished.cause.endswith("(secrets that stay overwritten: 'ours')")
    assert "create Bucket 'reserved'" in finished.cause
    assert await held(case) == ["ours", "theirs"]
    assert last_value(case, "ours") == CANARY
    undone = [outcome.step for event in events for outcome in event.steps_undone.outcomes]
    assert [events.plan.steps[number].key.name for number in undone] == ["red", "new"]


async def test_an_operation_with_an_irreversible_end_seals_only_there(faulty: World) -> None:
    """A rejected step after an overwritten secret rolls back, although the plan has an irreversible step."""
    case = await faulty.case_with(FRESH)
    await put_secrets(case, {"ours": "2"})
    before = await case.look()
    case.driver.fail({1: ItemFault.REJECT}, lasting=True)
    events = await case.apply(MIXED, secrets={"ours": CANARY})
    assert end(events).state == ROLLED_BACK
    check(before, events, await case.look(), before.content)


@pytest.mark.parametrize("fault", [ItemFault.LOSE_REQUEST, ItemFault.LOSE_RESPONSE])
@pytest.mark.parametrize("number", [0, 1])
async def test_a_secret_lost_once_is_sent_again(faulty: World, fault: ItemFault, number: int) -> None:
    case = faulty.case()
    await put_secrets(case, {"ours": "2"})
    case.driver.fail({number: fault})
    events = await case.apply(LABEL, secrets={"new": "1", "ours": CANARY})
    assert end(events).state == SUCCEEDED
    assert len(case.driver.sent) == 4
    assert await held(case) == ["new", "ours"]


@pytest.mark.parametrize("memory", [Memory.KEYS, Memory.SEARCHED])
@pytest.mark.parametrize("fault", [ItemFault.REJECT, ItemFault.LOSE_REQUEST, ItemFault.LOSE_RESPONSE])
@pytest.mark.parametrize("key", ["new", "ours"])
async def test_a_secret_that_cannot_be_written_undoes_everything(
    faulty: World, memory: Memory, fault: ItemFault, key: str
) -> None:
    faulty.driver.memory = memory
    case = faulty.case()
    await put_secrets(case, {"ours": "2"})
    before = await case.look()
    case.driver.fail({["new", "ours"].index(key): fault}, lasting=True)
    events = await case.apply(LABEL, secrets={"new": "1", "ours": CANARY})
    check(before, events, await case.look(), before.content)
    finished = end(events)
    assert finished.state == ROLLED_BACK
    why = "content refused; the message" if fault is ItemFault.REJECT else "the message"
    assert f"Secret '{key}': {why} of the platform is withheld" in finished.cause
    if key == "new":
        doubtful = "" if fault is ItemFault.REJECT else "; secrets that may have been written: 'new'"
        stays = f" (secrets that stay overwritten: 'ours'{doubtful})"
    else:
        stays = "" if fault is ItemFault.REJECT else " (secrets that may have been overwritten: 'ours')"
    assert finished.cause.endswith(stays)
    assert ("(secrets" in finished.cause) == bool(stays)
    # A secret that another writer may have made stays.
    assert await held(case) == (["new", "ours"] if (key, fault) == ("new", ItemFault.LOSE_RESPONSE) else ["ours"])
    case.driver.heal()
    assert end(await case.apply(LABEL, secrets={"new": "1", "ours": CANARY})).state == SUCCEEDED
    assert await held(case) == ["new", "ours"]


def outcome_texts(events: Iterable[operation_pb2.OperationEvent]) -> str:
    return " ".join(str(event) for event in events)


FAULTS: list[tuple[dict[int, ItemFault], dict[int, CallFault]]] = [
    *(({0: fault}, {}) for fault in ItemFault),
    *(({2: fault}, {}) for fault in ItemFault),
    *(({}, {call: fault}) for call in (0, 1) for fault in CallFault),
]


@pytest.mark.parametrize(("items", "calls"), [*FAULTS[::2], *(slow(*case) for case in FAULTS[1::2])])
@pytest.mark.parametrize("lasting", [slow(False), True])
async def test_a_secret_in_messages_of_a_driver_is_masked_everywhere(
    faulty: World,
    items: dict[int, ItemFault],
    calls: dict[int, CallFault],
    lasting: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    case = faulty.case()
    case.driver.fail(items, calls, lasting)
    case.driver.echoes = True
    said = ""
    try:
        events = await case.apply(LABEL, secrets={"k": CANARY})
        said = outcome_texts(events)
    except TokenStale as error:
        said = f"{error} {error.metadata}"
        operation = await case.settled()
        said += str(operation) + outcome_texts([event async for event in case.watch(operation.id)])
        assert operation.state in (ROLLED_BACK, SUCCEEDED)
    assert any(CANARY in each.put_secret.value for each in case.driver.sent)
    assert CANARY not in said
    # The log of the driver itself is not masked.
    assert not [
        record for record in caplog.records if record.name == "pkger.applier" and CANARY in str(record.__dict__)
    ]


async def test_a_plan_is_applied_with_the_secrets_that_it_writes(faulty: World) -> None:
    case = faulty.case()
    await put_secrets(case, {"ours": "2"})
    plan = await case.plan(LABEL, secret_keys=["new", "ours"])
    for others in ({}, {"new": CANARY}, {"new": CANARY, "ours": "1", "more": "2"}, {"new": CANARY, "other": "1"}):
        with pytest.raises(RequestInvalid, match="give the secrets that the plan writes, exactly these: 'new', 'ours'"):
            await case.apply_plan(plan, secrets=others)
    assert not case.driver.sent
    events = await case.apply_plan(plan, secrets={"new": CANARY, "ours": "1"})
    assert end(events).state == SUCCEEDED
    assert await held(case) == ["new", "ours"]


async def test_a_plan_without_secrets_takes_none(faulty: World) -> None:
    case = faulty.case()
    plan = await case.plan(LABEL)
    with pytest.raises(RequestInvalid, match="give the secrets that the plan writes, none"):
        await case.apply_plan(plan, secrets={"k": CANARY})
    assert end(await case.apply_plan(plan)).state == SUCCEEDED


@pytest.mark.parametrize("is_there", [False, True])
async def test_a_secret_that_came_or_went_makes_a_plan_stale(faulty: World, is_there: bool) -> None:
    case = faulty.case()
    await put_secrets(case, {"k": "1"} if is_there else {})
    plan = await case.plan(LABEL, secret_keys=["k"])
    if is_there:
        remove = driver_pb2.Mutation(delete_secret=driver_pb2.DeleteSecret(key="k"))
        await case.services.mutate(remove, org=case.org)
        case.driver.heal()
    else:
        await put_secrets(case, {"k": "theirs"})
    with pytest.raises(PlanStale, match="Secret 'k' is gone" if is_there else "Secret 'k' exists on the platform now"):
        await case.apply_plan(plan, secrets={"k": CANARY})
    assert not case.driver.sent


def test_a_request_is_the_same_with_other_values_of_the_same_secrets() -> None:
    """The digest of a request is stored; with the values in it, they could be guessed."""
    requests = [
        applier_pb2.ApplyRequest(request_id="r", secrets=secrets)
        for secrets in ({"a": "1", "b": "2"}, {"b": "3", "a": "4"}, {"a": "1"}, {})
    ]
    digests = [content_digest(request) for request in requests]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3
    assert requests[0].secrets["a"] == "1"


async def test_a_secret_that_cannot_be_removed_again_blocks_until_a_decision(faulty: World) -> None:
    case = faulty.case()
    before = await case.look()
    # The bucket is rejected, and then the removal of the secret.
    case.driver.fail({4: ItemFault.REJECT}, lasting=True)
    events = await case.apply(REFUSED, secrets={"k": CANARY})
    assert events[-1].finished.state == BLOCKED
    [blocked] = (await case.operation(events[0].operation_id)).blocked_steps
    assert blocked.step.put_secret.key == "k"
    assert await held(case) == ["k"]
    events = await case.recover(events[0].operation_id, _0="skip")
    assert events[-1].finished.state == ROLLED_BACK
    assert await held(case) == ["k"]
    assert (await case.look()).content == before.content


async def test_a_secret_that_is_written_after_its_removal_is_reported(faulty: World) -> None:
    faulty.driver.memory = Memory.SEARCHED
    case = faulty.case()
    case.driver.fail({0: ItemFault.DELAY}, lasting=True)
    events = await case.apply(LABEL, secrets={"k": CANARY})
    assert end(events).state == ROLLED_BACK
    assert await held(case) == ["k"]
    [late] = [effect for event in events for effect in event.late_effects.effects]
    assert (late.key.kind, late.resource_id) == ("Secret", "k")


async def test_a_failed_lookup_is_reported_without_a_value(faulty: World) -> None:
    faulty.driver.memory = Memory.SEARCHED
    case = faulty.case()
    await case.services.plan(LABEL, stack="s", org=case.org, secret_keys=["k"])
    looks_of_plan = case.driver.looks
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    # Reads: the plan of the apply, and the keys right before the secret is sent.
    case.driver.hide(looks_of_plan + 1)
    case.driver.echoes = True
    events = await case.apply(LABEL, secrets={"k": CANARY})
    assert "could not be looked up" in outcome_texts(events)
    assert CANARY not in outcome_texts(events)


async def test_secrets_are_undone_when_the_operation_is_cancelled(faulty: World) -> None:
    case = faulty.case()
    gate = case.driver.gate(0)
    stream = case.events(LABEL, secrets={"k": CANARY})
    events = [await anext(stream)]
    await gate.reached.wait()
    await case.services.cancel(events[0].operation_id)
    gate.opened.set()
    events += [event async for event in stream]
    assert end(events).state == ROLLED_BACK
    assert await held(case) == []
    assert (await case.settled()).state == operation_pb2.OPERATION_STATE_ROLLED_BACK
