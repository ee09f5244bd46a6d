"""Objects that leave a stack and come back under another key (docs/reference/engine.md, "Matching")."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_svc.matching.desired import Desired
from planner_svc.matching.key_changes import NamedResource, key_changes
from planner_svc.matching.match import match
from services.core.model import Key, Object, Origin, Package, Verb
from services.drivers.embedded.kinds import EMBEDDED
from services.kinds.format.canonical import spec_of
from services.kinds.registry import KINDS
from tests.planner.test_laws import a_world, packages
from tests.planner.world import World, an_object, step_lines

REPEATING = sorted(kind for kind, traits in EMBEDDED.kinds.items() if kind in KINDS and traits.names_may_repeat)
"""The kinds whose display names may repeat."""

KEYS = st.builds(Key, st.sampled_from(["Dashboard", "Task"]), st.sampled_from("abcdefgh"))


def tasks(*named: str) -> list[NamedResource]:
    """Tasks, each by name and display name: ``"a=Hourly"``."""
    return [(Key("Task", name), display_name) for name, _, display_name in (each.partition("=") for each in named)]


@pytest.mark.parametrize(
    ("leaving", "coming", "changes"),
    [
        (["a=X"], ["b=X"], {"a": "b"}),
        (["a=X"], ["b=Y"], {}),
        (["a=X"], ["b=x"], {}),
        (["a=X"], [], {}),
        ([], ["b=X"], {}),
        (["a=X", "b=X"], ["c=X"], {}),
        (["a=X"], ["b=X", "c=X"], {}),
        (["a=X", "b=X"], ["c=X", "d=X"], {}),
        (["a=X", "b=Y"], ["c=Y", "d=X"], {"a": "d", "b": "c"}),
        (["a=X", "b=Y", "c=Y"], ["d=X", "e=Y"], {"a": "d"}),
    ],
)
def test_one_object_that_leaves_is_one_that_comes_with_its_name(
    leaving: list[str], coming: list[str], changes: dict[str, str]
) -> None:
    found = key_changes(tasks(*leaving), tasks(*coming))
    assert found == {Key("Task", old): Key("Task", new) for old, new in changes.items()}


def test_an_object_of_another_kind_is_another_object() -> None:
    assert key_changes([(Key("Task", "a"), "X")], [(Key("Dashboard", "b"), "X")]) == {}


@given(
    st.dictionaries(KEYS, st.sampled_from("XYZ")).map(lambda named: list(named.items())),
    st.dictionaries(KEYS, st.sampled_from("XYZ")).map(lambda named: list(named.items())),
)
def test_exactly_the_objects_that_are_alone_on_both_sides_change_their_keys(
    leaving: Sequence[NamedResource], coming: Sequence[NamedResource]
) -> None:
    found = key_changes(leaving, coming)
    sides = [Counter((key.kind, name) for key, name in side) for side in (leaving, coming)]
    names = dict(coming)
    expected = {(key, name) for key, name in leaving if all(side[key.kind, name] == 1 for side in sides)}
    assert {(old, names[new]) for old, new in found.items()} == expected
    assert all(old.kind == new.kind for old, new in found.items())
    assert len({*found.values()}) == len(found)
    assert found == key_changes(leaving[::-1], coming[::-1])


def with_names(items: Sequence[Object], names: dict[str, str]) -> tuple[Object, ...]:
    """The same package under other names: each of *names* with its new name."""

    def renamed(key: Key) -> Key:
        return key._replace(name=names.get(key.name, key.name))

    return tuple(
        item._replace(
            key=renamed(item.key),
            associations=tuple(sorted(map(renamed, item.associations))),
            spec=spec_of(
                {
                    **item.spec.value,
                    **{field: names.get(item.spec.value[field], item.spec.value[field]) for field in kind.uses},
                }
            ),
        )
        for item in items
        for kind in (KINDS[item.key.kind],)
    )


@given(packages(), st.sets(st.sampled_from("abcdefmnoprs")))
def test_a_package_under_other_names_changes_nothing_but_the_record(
    package: tuple[Object, ...], changed: set[str]
) -> None:
    world = a_world()
    world.apply(*package)
    before, ids = dict(world.live), {entry.key: entry.resource_id for entry in world.record.resources}
    names = {name: f"{name}-2" for name in changed}
    again = with_names(package, names)
    plan = world.plan(*again)
    assert step_lines(plan) == []
    assert dict(plan.key_changes) == {
        old.key: new.key for old, new in zip(package, again, strict=True) if old.key != new.key
    }
    world.run(plan)
    assert world.live == before
    assert {entry.key: entry.resource_id for entry in world.record.resources} == {
        new.key: ids[old.key] for old, new in zip(package, again, strict=True)
    }
    assert {entry.key: entry.associations for entry in world.record.resources} == {
        item.key: item.associations for item in again
    }
    assert world.plan(*again).no_change


@pytest.mark.parametrize("kind", REPEATING)
def test_a_resource_whose_object_got_another_name_is_updated_and_keeps_its_id(kind: str) -> None:
    world = World()
    world.apply(an_object("NotificationEndpointHTTP", "e"), an_object(kind, "old", name="Same", **uses(kind)))
    known = world.entry(kind, "old").resource_id
    changed = an_object(kind, "new", name="Same", description="new", **uses(kind))
    plan = world.apply(an_object("NotificationEndpointHTTP", "e"), changed)
    assert [(step.verb, step.key, step.resource_id) for step in plan.steps] == [(Verb.UPDATE, changed.key, known)]
    assert plan.key_changes == ((Key(kind, "old"), changed.key),)
    assert (world.entry(kind, "new").resource_id, world.entry(kind, "new").origin) == (known, Origin.CREATED)
    assert Key(kind, "old") not in {entry.key for entry in world.record.resources}


def uses(kind: str) -> dict[str, str]:
    """The fields in which an object of *kind* refers to the endpoint ``e``."""
    return dict.fromkeys(KINDS[kind].uses, "e")


def test_the_name_on_the_platform_counts() -> None:
    """As for unique names, and as an export has it."""
    world = World()
    world.apply(an_object("Task", "old", name="Hourly"))
    known = world.live[world.entry("Task", "old").resource_id]
    world.write(known._replace(spec=an_object("Task", "old", name="By hand").spec))
    assert step_lines(world.plan(an_object("Task", "new", name="By hand"))) == []
    assert step_lines(world.plan(an_object("Task", "new", name="Hourly"))) == ["0 create Task new", "1 delete Task old"]


def test_two_objects_of_one_name_are_deleted_and_created() -> None:
    world = World()
    world.apply(an_object("Task", "a", name="Same"), an_object("Task", "b", name="Same"))
    plan = world.plan(an_object("Task", "c", name="Same"), an_object("Task", "d", name="Same"))
    assert [step.verb for step in plan.steps] == [Verb.CREATE] * 2 + [Verb.DELETE] * 2
    assert plan.key_changes == ()


def test_an_object_that_stays_is_no_candidate() -> None:
    world = World()
    world.apply(an_object("Task", "stays", name="Same"), an_object("Task", "old", name="Same"))
    plan = world.plan(an_object("Task", "stays", name="Same"), an_object("Task", "new", name="Same"))
    assert step_lines(plan) == []
    assert plan.key_changes == ((Key("Task", "old"), Key("Task", "new")),)


def test_an_unowned_resource_of_the_name_is_not_taken() -> None:
    world = World()
    world.add("Task", "Same")
    assert step_lines(world.plan(an_object("Task", "new", name="Same"))) == ["0 create Task new"]


def test_a_resource_that_is_gone_has_no_name() -> None:
    world = World()
    world.apply(an_object("Task", "old", name="Same"))
    world.delete(world.entry("Task", "old").resource_id)
    plan = world.apply(an_object("Task", "new", name="Same"))
    assert step_lines(plan) == ["0 create Task new"]
    assert [entry.key for entry in world.record.resources] == [Key("Task", "new")]


def test_a_pending_deletion_is_no_candidate() -> None:
    world = World()
    world.apply(an_object("Task", "old", name="Same"))
    [entry] = world.record.resources
    world.record = replace(world.record, resources=(entry._replace(is_pending_delete=True),))
    assert step_lines(world.plan(an_object("Task", "new", name="Same"))) == ["0 create Task new", "1 delete Task old"]


def test_skipping_the_new_name_leaves_resource_and_entry_as_they_are() -> None:
    world = World()
    world.apply(an_object("Task", "old", name="Same"))
    plan = world.plan(an_object("Task", "new", name="Same", description="new"), skip=[Key("Task", "new")])
    assert plan.no_change
    assert plan.untouched_count == 1


def test_a_protected_resource_gets_the_new_name_of_its_object() -> None:
    world = World()
    world.record = replace(world.record, policy={"protect": True})
    world.apply(an_object("Task", "old", name="Same"))
    plan = world.apply(an_object("Task", "new", name="Same"))
    assert (plan.steps, plan.remarks.warnings) == ((), ())
    assert [entry.key for entry in world.record.resources] == [Key("Task", "new")]


def test_a_stack_without_a_name_keeps_the_rest_and_follows_new_names() -> None:
    world = World()
    world.apply(an_object("Task", "old", name="Same"), an_object("Task", "rest"))
    desired = Desired(Package((an_object("Task", "new", name="Same"),)), is_for_nameless=True)
    matching = match(desired, world.record, world.live.values(), EMBEDDED)
    assert matching.renamed == {Key("Task", "old"): Key("Task", "new")}
    assert [*matching.untouched] == [Key("Task", "rest")]
