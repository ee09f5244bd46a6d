"""Laws about packages that are composed, and about plans of what they are composed to."""

import json
from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from planner_svc.composition.compose import compose
from planner_svc.composition.decompose import decompose
from planner_svc.composition.full_names import with_full_names
from planner_svc.composition.model import Component, Composition, CompositionProblems
from services.core.model import Key, Object, Package
from services.kinds.format.canonical import spec_of
from services.kinds.registry import KINDS, family_of
from services.packages.installed import InstalledPackage
from services.packages.manifest import Requirement
from services.packages.package_text import KeptPackage, package_text, read_package
from services.packages.versions import Version
from tests.planner.test_composition import a_package
from tests.planner.test_key_changes import with_names
from tests.planner.test_laws import PLATFORM, a_world, packages
from tests.planner.world import World, step_lines

NAMES = ("base", "p", "q")


def composed(components: Sequence[Component], recorded: Iterable[Key] = ()) -> Package:
    composition = compose(components, PLATFORM, [*recorded])
    assert isinstance(composition, Composition), composition
    return composition.package


def apart(item: Object, package: str) -> Object:
    """*item* under a display name that only its package has."""
    return item._replace(spec=spec_of({**item.spec.value, "name": f"{item.spec.display_name} of {package}"}))


@st.composite
def several(draw: st.DrawFn) -> list[Component]:
    """
    Up to three packages of which the later ones require the first.

    Some of their objects are one resource. Packages with different ones are made to go together: in the later package,
    these get other display names. Some labels are those of the first package.
    """
    components: list[Component] = []
    labels: list[str] = []
    for name in NAMES[: draw(st.integers(1, 3))]:
        objects = draw(packages())
        if labels:
            theirs = [Key("Label", f"base.{label}") for label in draw(st.lists(st.sampled_from(labels), unique=True))]
            objects = tuple(
                item._replace(associations=tuple(sorted({*item.associations, *theirs})))
                if item.key.kind != "Label"
                else item
                for item in objects
            )
        component = a_package(name, *objects, requires=NAMES[:1] if components else ())
        if not components:
            labels = [item.key.name for item in objects if item.key.kind == "Label"]
        answer = compose([*components, component], PLATFORM)
        if isinstance(answer, CompositionProblems):
            assert not answer.violations
            different = {key for each in answer.differing for key in (each.first, each.second)}
            objects = tuple(
                apart(item, name) if Key(item.key.kind, f"{name}.{item.key.name}") in different else item
                for item in objects
            )
            component = a_package(name, *objects, requires=NAMES[:1])
        components.append(component)
    return components


def by_key(package: Package) -> dict[Key, Object]:
    return {item.key: item for item in package.objects}


def content(package: Package) -> list[tuple[object, ...]]:
    """The resources of a package by their names on the platform, without keys."""
    shown = {(family_of(item.key.kind), item.key.name): item.spec.display_name for item in package.objects}
    return sorted(
        (
            item.key.kind,
            spec_of(
                {
                    **item.spec.value,
                    **{
                        field: shown[family, item.spec.value[field]]
                        for field, family in KINDS[item.key.kind].uses.items()
                    },
                }
            ).text,
            sorted(shown["label", label.name] for label in item.associations),
        )
        for item in package.objects
    )


def resources(world: World) -> list[tuple[object, ...]]:
    """The content of a platform without the names of objects in specs, which a new key leaves as they are."""
    rest = []
    for kind, text, *others in world.content():
        spec = {field: value for field, value in json.loads(str(text)).items() if field not in KINDS[str(kind)].uses}
        rest.append((kind, spec, *others))
    # The texts were sorted with these names.
    return sorted(rest, key=repr)


def ids_of(world: World) -> dict[Key, str]:
    return {entry.key: entry.resource_id for entry in world.record.resources}


@given(packages())
def test_one_package_is_that_package_with_longer_names(objects: tuple[Object, ...]) -> None:
    names = {item.key.name: f"p.{item.key.name}" for item in objects}
    package = composed([a_package("p", *objects)])
    assert package.objects == with_names(objects, names)


@given(several())
def test_the_packages_that_are_composed_stay_as_they_are(components: list[Component]) -> None:
    before = [(item, item.spec.text, dict(item.spec.value)) for each in components for item in each.package.objects]
    compose(components, PLATFORM)
    after = [(item, item.spec.text, dict(item.spec.value)) for each in components for item in each.package.objects]
    assert after == before


@given(several())
def test_objects_with_full_names_are_composed_to_themselves(components: list[Component]) -> None:
    package = composed(components)
    again = [
        Component(
            each.name,
            Package(tuple(item for item in package.objects if item.key.name.startswith(f"{each.name}."))),
            frozenset(NAMES),
        )
        for each in components
    ]
    assert composed(again, by_key(package)).objects == package.objects


@given(several(), st.data())
def test_the_order_of_packages_changes_only_the_keys_of_what_they_share(
    components: list[Component], data: st.DataObject
) -> None:
    package = composed(components)
    shuffled = data.draw(st.permutations(components))
    assert content(composed(shuffled)) == content(package)
    assert by_key(composed(shuffled, by_key(package))) == by_key(package)


@given(several())
def test_each_name_in_a_package_is_that_of_an_object_in_it(components: list[Component]) -> None:
    package = composed(components)
    names = {(family_of(item.key.kind), item.key.name) for item in package.objects}
    assert len(names) == len(package.objects)
    for item in package.objects:
        assert {("label", label.name) for label in item.associations} <= names
        assert {(family, item.spec.value[field]) for field, family in KINDS[item.key.kind].uses.items()} <= names


@given(several())
def test_each_object_is_in_the_stack_with_its_labels(components: list[Component]) -> None:
    """Under its own key, or as the equal one that has its unique name."""
    package = by_key(composed(components))
    labels_of = {key: {package[label].spec.display_name for label in package[key].associations} for key in package}
    named = {PLATFORM.compared(item.key.kind, item.spec): key for key, item in package.items()}
    for component in components:
        alone = by_key(composed([each for each in components if each.name in ("base", component.name)]))
        for item in component.package.objects:
            own = Key(item.key.kind, f"{component.name}.{item.key.name}")
            key = own if own in package else named[PLATFORM.compared(item.key.kind, item.spec)]
            assert own in package or not PLATFORM.kinds[own.kind].names_may_repeat
            assert package[key].spec.display_name == item.spec.display_name
            labels = {alone[label].spec.display_name for label in alone[own].associations} if own in alone else set()
            assert labels <= labels_of[key]


@given(several())
def test_after_a_plan_of_several_packages_there_is_nothing_to_do(components: list[Component]) -> None:
    world = a_world()
    package = composed(components)
    world.apply(*package.objects)
    again = composed(components, ids_of(world))
    plan = world.plan(*again.objects)
    assert plan.no_change
    assert (step_lines(plan), again.objects) == ([], package.objects)


@given(several(), st.data())
def test_what_packages_share_keeps_its_resource_when_one_of_them_leaves(
    components: list[Component], data: st.DataObject
) -> None:
    """Packages come and go, and the platform is that of those that are there; no equal resource is created again."""
    world = a_world()
    world.apply(*composed(components).objects)
    before = dict(world.live)
    leaving = data.draw(st.sampled_from([each.name for each in components if each.name != "base"] or ["base"]))
    staying = [each for each in components if each.name != leaving]
    package = composed(staying, ids_of(world))
    world.apply(*package.objects)
    assert world.live.keys() <= before.keys()
    alone = a_world()
    alone.apply(*composed(staying).objects)
    assert resources(world) == resources(alone)
    world.apply(*composed(components, ids_of(world)).objects)
    whole = a_world()
    whole.apply(*composed(components).objects)
    assert resources(world) == resources(whole)


@given(several())
def test_a_composition_is_taken_apart_into_what_was_composed(components: list[Component]) -> None:
    """Also where several packages declare one object: each has it under its own name, and names it so."""
    composition = compose(components, PLATFORM)
    assert isinstance(composition, Composition), composition
    installed = tuple(
        InstalledPackage(
            each.name, Version.parse("1.0.0"), requires=tuple(Requirement(name) for name in sorted(each.requires))
        )
        for each in components
    )
    text = package_text(
        KeptPackage(composition.package.objects, packages=installed, declarations=composition.declarations)
    )
    shared = {each.key: key for key, declarations in composition.declarations.items() for each in declarations}

    def resources(item: Object) -> set[Key]:
        """The labels of *item*, each as the one key of its resource: its package may declare what it required."""
        return {shared.get(label, label) for label in item.associations}

    again = [*decompose(read_package(text)).values()]
    assert [each.name for each in again] == [each.name for each in components]
    for before, after in zip(components, again, strict=True):
        full = [with_full_names(item, before.name) for item in before.package.objects]
        assert {each.key: (each.spec, resources(each)) for each in after.package.objects} == {
            each.key: (each.spec, resources(each)) for each in full
        }
        assert after.requires == before.requires
    recomposed = compose(again, PLATFORM)
    assert isinstance(recomposed, Composition)
    assert recomposed.declarations == composition.declarations
