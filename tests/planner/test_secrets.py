"""Secrets in a plan: their keys, their steps, and that these come first."""

from collections.abc import Iterable

import pytest

from planner_svc.matching.desired import Desired
from planner_svc.secrets import missing_secrets, refuse_unusable_keys, secret_steps, secrets_of
from services.core.errors import RequestInvalid
from services.core.model import SECRET, Key, Object, Package, PlatformTraits, Undo, Verb
from services.drivers.embedded.kinds import EMBEDDED
from tests.planner.world import World, an_object, step_lines

WITHOUT = PlatformTraits("plain", "1", EMBEDDED.kinds, 10, 1)


def refusal(keys: Iterable[str], platform: PlatformTraits = EMBEDDED, is_end: bool = False) -> str:
    with pytest.raises(RequestInvalid) as caught:
        refuse_unusable_keys(Desired(Package(()), is_end=is_end, secret_keys=frozenset(keys)), platform)
    assert caught.value.metadata["field"] == "secret_keys"
    return str(caught.value)


def test_held_secrets_are_overwritten_irreversibly_and_others_created() -> None:
    created, overwritten = secret_steps(["b", "a"], {"b", "c"})
    assert (created.verb, created.key, created.undo) == (Verb.CREATE, Key(SECRET, "a"), Undo.EXACT)
    assert (overwritten.verb, overwritten.key, overwritten.undo) == (Verb.UPDATE, Key(SECRET, "b"), Undo.NONE)
    assert overwritten.resource_id == "b"
    assert "cannot be restored" in overwritten.reason
    assert not any(step.old_spec or step.new_spec for step in (created, overwritten))


def test_secrets_come_before_everything_else() -> None:
    world = World(secrets={"held"})
    world.apply(an_object("Bucket", "old"))
    plan = world.plan(an_object("Label", "l"), secret_keys=["new", "held"])
    assert step_lines(plan) == [
        "0 update Secret held",
        "0 create Secret new",
        "1 create Label l",
        "2 delete Bucket old",
    ]
    assert plan.stages[0] == "secrets"
    assert [step.number for step in plan.steps] == [0, 1, 2, 3]


def test_a_plan_of_secrets_alone_has_steps_and_changes_no_record() -> None:
    world = World()
    world.apply(an_object("Label", "l"))
    plan = world.plan(an_object("Label", "l"), secret_keys=["k"])
    assert step_lines(plan) == ["0 create Secret k"]
    assert not plan.no_change
    assert world.owned_after(plan) == world.record.resources


def test_the_digest_has_the_keys_and_whether_they_are_held() -> None:
    label = an_object("Label", "l")
    digests = [
        World().plan(label).digest,
        World().plan(label, secret_keys=["k"]).digest,
        World().plan(label, secret_keys=["k", "l"]).digest,
        World(secrets={"k"}).plan(label, secret_keys=["k"]).digest,
    ]
    assert len(set(digests)) == 4
    assert World().plan(label, secret_keys=["k"]).digest == digests[1]
    assert World(secrets={"other"}).plan(label, secret_keys=["k"]).digest == digests[1]


@pytest.mark.parametrize(
    ("referred", "given", "held", "missing"),
    [
        ([], [], [], ()),
        (["b", "a"], [], [], ("a", "b")),
        (["a", "b"], ["a"], [], ("b",)),
        (["a", "b"], [], ["b"], ("a",)),
        (["a", "b"], ["a"], ["b"], ()),
        (["a"], ["b"], ["c"], ("a",)),
    ],
)
def test_a_secret_is_missing_when_it_is_neither_given_nor_held(
    referred: list[str], given: list[str], held: list[str], missing: tuple[str, ...]
) -> None:
    assert missing_secrets(referred, given, held) == missing


def test_secrets_of_skipped_objects_alone_are_not_needed() -> None:
    def endpoint(name: str, key: str) -> Object:
        return an_object("NotificationEndpointSlack", name, token={"secretRef": {"key": key}})

    package = Package((endpoint("a", "kept"), endpoint("b", "skipped"), endpoint("c", "both"), endpoint("d", "both")))
    skip = frozenset(Key("NotificationEndpointSlack", name) for name in "bd")
    referred = ["both", "elsewhere", "kept", "skipped"]
    assert secrets_of(Desired(package), EMBEDDED, referred) == tuple(referred)
    assert secrets_of(Desired(package, skip), EMBEDDED, referred) == ("both", "elsewhere", "kept")


@pytest.mark.parametrize("key", ["", "x" * 201, "a\nb", "\x00", "\x7f"])
def test_an_invalid_key_is_refused(key: str) -> None:
    assert "a key is 1 to 200 characters" in refusal(["good", key])
    assert len(refusal([key])) < 400


@pytest.mark.parametrize("keys", [[], ["k"], ["x" * 200], ["with blanks and ☂"], [str(n) for n in range(100)]])
def test_other_keys_are_accepted(keys: list[str]) -> None:
    refuse_unusable_keys(Desired(Package(()), secret_keys=frozenset(keys)), EMBEDDED)


def test_more_secrets_than_one_apply_writes_are_refused() -> None:
    assert "101 are more than the 100" in refusal(map(str, range(101)))


def test_a_platform_without_secrets_accepts_none() -> None:
    assert "platform 'plain' holds no secrets" in refusal(["k"], WITHOUT)
    refuse_unusable_keys(Desired(Package(())), WITHOUT)


def test_an_uninstall_takes_no_secrets() -> None:
    assert "an uninstall writes no secrets" in refusal(["k"], is_end=True)
