"""What packages and objects say of policies, in one package and in several (docs/policies.md, "In packages")."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner_svc.composition.compose import compose
from planner_svc.composition.decompose import decompose
from planner_svc.composition.model import Component, Composition
from planner_svc.composition.own_policies import own_policies
from planner_svc.export.own_policies import lifecycles_of
from services.core.model import InventoryEntry, Key, Object, Origin, Package, StackRecord, Target
from services.kinds.format.canonical import canonical_text
from services.kinds.policy import OwnPolicy
from services.packages.installed import InstalledPackage
from services.packages.lifecycle import read_lifecycle
from services.packages.manifest import Requirement
from services.packages.package_text import KeptPackage, package_text, read_package
from services.packages.versions import Version
from tests import strategies
from tests.planner.test_composition import a_package
from tests.planner.test_composition_laws import several
from tests.planner.test_laws import PLATFORM
from tests.planner.world import an_object


def saying(item: Object, **policy: Any) -> Object:
    return item._replace(lifecycle=canonical_text(policy))


def a_document(policy: Any) -> dict[str, str]:
    return {"": read_lifecycle("pkger/v1", {"name": "x"}, {"policy": policy}).text}


def with_document(component: Component, **policy: Any) -> Component:
    return replace(component, package=replace(component.package, lifecycles=a_document(policy)))


def composed(*components: Component) -> Composition:
    composition = compose(components, PLATFORM)
    assert isinstance(composition, Composition)
    return composition


def said(composition: Composition) -> dict[str, OwnPolicy]:
    """What is said of each object, by its kind and name."""
    own = own_policies(composition.package, composition.declarations)
    return {f"{key.kind} {key.name}": policy for key, policy in own.items()}


BUCKET, TASK = an_object("Bucket", "raw"), an_object("Task", "roll")


def test_nothing_is_said_of_most_objects() -> None:
    assert own_policies(Package((BUCKET, TASK)), {}) == {}
    assert own_policies(Package((saying(BUCKET, protect=True), TASK)), {}) == {
        BUCKET.key: OwnPolicy({}, {"protect": True})
    }


def test_of_what_a_package_ignores_only_the_fields_of_the_object_count() -> None:
    rules = ["/description", {"kind": "Task", "paths": ["/every"]}, {"names": ["ra*"], "paths": ["/b", "/a"]}]
    package = Package((BUCKET, TASK), lifecycles=a_document({"ignore": rules}))
    assert own_policies(package, {}) == {
        BUCKET.key: OwnPolicy({"ignore": ["/a", "/b", "/description"]}),
        TASK.key: OwnPolicy({"ignore": ["/description", "/every"]}),
    }


def test_each_object_has_the_document_of_its_package_under_its_own_name() -> None:
    one = with_document(a_package("p", BUCKET), drift="ignore", ignore=[{"names": ["raw"], "paths": ["/a"]}])
    other = with_document(a_package("q", TASK), protect=True)
    assert said(composed(one, other, a_package("r", an_object("Bucket", "other")))) == {
        "Bucket p.raw": OwnPolicy({"drift": "ignore", "ignore": ["/a"]}),
        "Task q.roll": OwnPolicy({"protect": True}),
    }


def test_an_object_of_several_packages_has_what_all_of_them_say() -> None:
    one = with_document(a_package("p", saying(BUCKET, drift="ignore", ignore=["/a"])), on_remove="orphan")
    other = with_document(
        a_package("q", saying(BUCKET, drift="report", protect=True, ignore=["/b"])), on_remove="delete", adopt="never"
    )
    assert said(composed(one, other)) == {
        "Bucket p.raw": OwnPolicy(
            {"on_remove": "orphan", "adopt": "never"}, {"drift": "ignore", "protect": True, "ignore": ["/a", "/b"]}
        )
    }


@given(components=several(), data=st.data())
def test_packages_that_are_taken_apart_say_what_they_said(components: list[Component], data: st.DataObject) -> None:
    texts = data.draw(st.lists(strategies.policy_texts, min_size=1, max_size=6))
    documents = [data.draw(strategies.lifecycles) for _ in components]
    saying_components = [
        replace(
            each,
            package=Package(
                tuple(
                    item._replace(lifecycle=texts[place % len(texts)])
                    for place, item in enumerate(each.package.objects)
                ),
                each.package.sources,
                document,
            ),
        )
        for each, document in zip(components, documents, strict=True)
    ]
    composition = composed(*saying_components)
    installed = tuple(
        InstalledPackage(
            each.name, Version.parse("1.0.0"), requires=tuple(Requirement(name) for name in sorted(each.requires))
        )
        for each in components
    )
    kept = KeptPackage(
        composition.package.objects,
        packages=installed,
        declarations=composition.declarations,
        lifecycles=composition.package.lifecycles,
    )
    read = read_package(package_text(kept))
    assert own_policies(Package(read.objects, lifecycles=read.lifecycles), read.declarations) == own_policies(
        composition.package, composition.declarations
    )
    again = composed(*decompose(read).values())
    assert said(again) == said(composition)
    assert again.package.lifecycles == composition.package.lifecycles


def a_stack(own: OwnPolicy, **policy: Any) -> StackRecord:
    entry = InventoryEntry(Key("Bucket", "p.raw"), "1", Origin.CREATED, own_policy=own.text)
    return StackRecord("s", Target(), "s", 1, (entry,), policy=policy)


def test_an_export_says_of_objects_what_they_said() -> None:
    stack = a_stack(OwnPolicy({"drift": "ignore"}, {"protect": True}))
    assert lifecycles_of(stack, has_packages=False) == {("Bucket", "1"): '{"protect":true}'}
    assert lifecycles_of(a_stack(OwnPolicy({"drift": "ignore"})), has_packages=False) == {}


def test_an_export_of_several_packages_says_what_they_said_as_far_as_it_counted() -> None:
    own = OwnPolicy(
        {"drift": "ignore", "on_remove": "orphan", "protect": False, "ignore": ["/a"]},
        {"protect": True, "ignore": ["/b"]},
    )
    stack = a_stack(own, drift="report", protect=True)
    assert lifecycles_of(stack, has_packages=True) == {
        ("Bucket", "1"): '{"ignore":["/a","/b"],"on_remove":"orphan","protect":true}'
    }
