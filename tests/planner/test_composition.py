"""Several packages as one package of their stack (docs/reference/engine.md, "Composition")."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from planner_svc.composition.compose import compose
from planner_svc.composition.full_names import source_name
from planner_svc.composition.model import Component, Composition, CompositionProblems
from services.core.model import (
    EnvReference,
    FieldChange,
    Key,
    Location,
    NameUniqueness,
    Object,
    Package,
    PackageReference,
    Position,
    WrittenValue,
)
from services.drivers.embedded.kinds import EMBEDDED
from tests.planner.world import an_object

PAGER = "NotificationEndpointPagerDuty"


def a_package(name: str, *objects: Object, requires: Sequence[str] = ()) -> Component:
    return Component(name, Package(objects, (source_name(name, "1.0.0", "package.yaml"),)), frozenset(requires))


def composed(*packages: Component, recorded: Sequence[Key] = ()) -> Package:
    composition = compose(packages, EMBEDDED, recorded)
    assert isinstance(composition, Composition), composition
    return composition.package


def problems(*packages: Component, recorded: Sequence[Key] = ()) -> CompositionProblems:
    answer = compose(packages, EMBEDDED, recorded)
    assert isinstance(answer, CompositionProblems)
    return answer


def lines(package: Package) -> list[str]:
    """The objects as text: kind, name, labels, and the endpoint of a rule."""
    return [
        " ".join(
            [
                *item.key,
                *(label.name for label in item.associations),
                *(f"-> {item.spec.value[field]}" for field in ("endpointName",) if field in item.spec.value),
            ]
        )
        for item in package.objects
    ]


def a_rule(name: str, endpoint: str, labels: Sequence[str] = ()) -> Object:
    return an_object("NotificationRule", name, labels, endpointName=endpoint)


@pytest.mark.parametrize(
    ("packages", "objects"),
    [
        ([], []),
        ([a_package("p")], []),
        (
            [a_package("p", an_object("Label", "env"), an_object("Bucket", "raw", ["env"]))],
            ["Label p.env", "Bucket p.raw p.env"],
        ),
        (
            [a_package("p", an_object(PAGER, "pager"), a_rule("page", "pager"))],
            [f"{PAGER} p.pager", "NotificationRule p.page -> p.pager"],
        ),
        # Names of other packages.
        (
            [
                a_package("d", an_object("Label", "env"), an_object(PAGER, "pager")),
                a_package(
                    "p", an_object("Label", "team"), a_rule("page", "d.pager", ["d.env", "team"]), requires=["d"]
                ),
            ],
            ["Label d.env", f"{PAGER} d.pager", "Label p.team", "NotificationRule p.page d.env p.team -> d.pager"],
        ),
        # The order of packages is not that of their requirements.
        (
            [
                a_package("p", an_object("Task", "t", ["d.env"]), requires=["d"]),
                a_package("d", an_object("Label", "env")),
            ],
            ["Task p.t d.env", "Label d.env"],
        ),
        # Names that may repeat.
        (
            [a_package("p", an_object("Dashboard", "board")), a_package("q", an_object("Dashboard", "board"))],
            ["Dashboard p.board", "Dashboard q.board"],
        ),
        # One resource.
        (
            [
                a_package("p", an_object("Label", "env"), an_object("Bucket", "raw", ["env"])),
                a_package("q", an_object("Label", "e", name="env"), an_object("Task", "t", ["e"])),
            ],
            ["Label p.env", "Bucket p.raw p.env", "Task q.t p.env"],
        ),
        (
            [
                a_package("p", an_object("Label", "a"), an_object("Bucket", "raw", ["a"])),
                a_package("q", an_object("Label", "b"), an_object("Bucket", "raw", ["b"])),
                a_package("r", an_object("Bucket", "r", name="raw")),
            ],
            ["Label p.a", "Bucket p.raw p.a q.b", "Label q.b"],
        ),
        (
            [
                a_package("p", an_object(PAGER, "pager"), a_rule("page", "pager")),
                a_package("q", an_object(PAGER, "x", name="pager"), a_rule("page", "x")),
            ],
            [f"{PAGER} p.pager", "NotificationRule p.page -> p.pager", "NotificationRule q.page -> p.pager"],
        ),
        # A label of its own and one of another package turn out to be one.
        (
            [
                a_package("d", an_object("Label", "env")),
                a_package(
                    "p", an_object("Label", "e", name="env"), an_object("Task", "t", ["d.env", "e"]), requires=["d"]
                ),
            ],
            ["Label d.env", "Task p.t d.env"],
        ),
        # Two such objects of one package are left for the plan to refuse.
        (
            [a_package("p", an_object("Label", "a", name="x"), an_object("Label", "b", name="X"))],
            ["Label p.a", "Label p.b"],
        ),
    ],
)
def test_objects_have_full_names(packages: list[Component], objects: list[str]) -> None:
    assert lines(composed(*packages)) == objects


def test_a_kind_that_the_platform_lacks_is_left_for_the_plan_to_refuse() -> None:
    packages = [a_package(name, an_object("Variable", "v")) for name in "pq"]
    platform = replace(EMBEDDED, kinds={kind: each for kind, each in EMBEDDED.kinds.items() if kind != "Variable"})
    composition = compose(packages, platform)
    assert isinstance(composition, Composition), composition
    package = composition.package
    assert lines(package) == ["Variable p.v", "Variable q.v"]


@pytest.mark.parametrize(
    ("recorded", "key"),
    [
        ([], "p.env"),
        ([Key("Label", "p.env")], "p.env"),
        ([Key("Label", "q.env")], "q.env"),
        ([Key("Label", "q.env"), Key("Label", "r.env")], "q.env"),
        ([Key("Label", "gone.env")], "p.env"),
        ([Key("Bucket", "q.env")], "p.env"),
    ],
)
def test_one_resource_has_the_recorded_key_or_that_of_the_first_package(recorded: list[Key], key: str) -> None:
    packages = [a_package(name, an_object("Label", "env"), an_object("Bucket", name, ["env"])) for name in "pqr"]
    objects = composed(*packages, recorded=recorded).objects
    assert {item.key.name for item in objects if item.key.kind == "Label"} == {key}
    assert [item.associations for item in objects if item.key.kind == "Bucket"] == [(Key("Label", key),)] * 3


def test_an_object_of_another_kind_of_its_family_has_the_recorded_key() -> None:
    packages = [a_package(name, an_object("CheckThreshold", "silent")) for name in "pq"]
    [item] = composed(*packages, recorded=[Key("CheckDeadman", "q.silent")]).objects
    assert item.key == Key("CheckThreshold", "q.silent")


def test_specs_are_equal_as_the_platform_compares_them() -> None:
    """The order of a list may have no meaning."""
    kinds = {**EMBEDDED.kinds, "Bucket": replace(EMBEDDED.kinds["Bucket"], set_paths=("/measurementSchemas",))}
    packages = [
        a_package(name, an_object("Bucket", "raw", measurementSchemas=schemas))
        for name, schemas in (("p", ["a", "b"]), ("q", ["b", "a"]))
    ]
    composition = compose(packages, replace(EMBEDDED, kinds=kinds))
    assert isinstance(composition, Composition), composition
    package = composition.package
    assert lines(package) == ["Bucket p.raw"]
    assert problems(*packages).differing


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            an_object("Label", "env", color="red"),
            an_object("Label", "e", name="env", color="blue", description="x"),
            "Label 'q.e' shares its name with Label 'p.env',"
            ' where color is "red" and not "blue", description is "" and not "x"',
        ),
        (
            an_object("Label", "env"),
            an_object("Label", "e", name="Env "),
            """Label 'q.e' shares its name with Label 'p.env', where name is "env" and not "Env \"""",
        ),
        (
            an_object("CheckDeadman", "c"),
            an_object("CheckThreshold", "c"),
            "CheckThreshold 'q.c' shares its name with CheckDeadman 'p.c', which is of another kind",
        ),
    ],
)
def test_different_objects_of_one_name_are_no_package(first: Object, second: Object, text: str) -> None:
    found = problems(a_package("p", first), a_package("q", second))
    [difference] = found.differing
    assert (str(difference), difference.packages, found.violations) == (text, ("p", "q"), ())


def test_all_differences_are_named_beside_the_recorded_key() -> None:
    colours = {"p": "red", "q": "blue", "r": "red", "s": "green"}
    packages = [a_package(name, an_object("Label", "env", color=colour)) for name, colour in colours.items()]
    found = problems(*packages, recorded=[Key("Label", "r.env")])
    assert [(each.packages, each.fields) for each in found.differing] == [
        (("r", "q"), (FieldChange("/color", '"red"', '"blue"'),)),
        (("r", "s"), (FieldChange("/color", '"red"', '"green"'),)),
    ]


def test_rules_that_name_one_endpoint_are_equal() -> None:
    """On a platform where names of rules are unique."""
    rules = replace(EMBEDDED.kinds["NotificationRule"], name_uniqueness=NameUniqueness.EXACT)
    packages = [a_package(name, an_object(PAGER, "pager"), a_rule("page", "pager")) for name in "pq"]
    composition = compose(packages, replace(EMBEDDED, kinds={**EMBEDDED.kinds, "NotificationRule": rules}))
    assert isinstance(composition, Composition), composition
    package = composition.package
    assert lines(package) == [f"{PAGER} p.pager", "NotificationRule p.page -> p.pager"]


@pytest.mark.parametrize(
    ("packages", "reasons"),
    [
        (
            [a_package("d", an_object("Label", "env")), a_package("p", an_object("Task", "t", ["d.env"]))],
            [
                "'d.env' is an object of the package 'd', which 'p' does not require;"
                " add it to spec.requires of the manifest"
            ],
        ),
        (
            [
                a_package("d", an_object("Label", "env"), an_object(PAGER, "hook")),
                a_package("p", a_rule("r", "d.env", ["d.hook"]), requires=["d"]),
            ],
            [
                "the package 'd' has no label with the metadata.name 'hook'; it has env",
                "the package 'd' has no endpoint with the metadata.name 'env'; it has hook",
            ],
        ),
        (
            [a_package("p", an_object("Task", "t", ["d.env"]), requires=["d"])],
            ["the package 'd' has no label with the metadata.name 'env'; it has none"],
        ),
        # A direct requirement, not one of a requirement.
        (
            [
                a_package("e", an_object("Label", "env")),
                a_package("d", requires=["e"]),
                a_package("p", an_object("Task", "t", ["e.env"]), requires=["d"]),
            ],
            [
                "'e.env' is an object of the package 'e', which 'p' does not require;"
                " add it to spec.requires of the manifest"
            ],
        ),
        (
            [
                a_package("d", *(an_object("Label", name) for name in "gfedcba")),
                a_package("p", an_object("Task", "t", ["d.x"]), requires=["d"]),
            ],
            ["the package 'd' has no label with the metadata.name 'x'; it has a, b, c, d, e and 2 more"],
        ),
    ],
)
def test_a_name_that_leads_nowhere_is_a_violation(packages: list[Component], reasons: list[str]) -> None:
    found = problems(*packages)
    assert ([each.reason for each in found.violations], found.differing) == (reasons, ())


def test_a_violation_has_the_place_of_the_name() -> None:
    """Or of its object, if nobody knows the place of the name."""
    source = source_name("p", "1.4.0", "rules.yaml")
    rule = a_rule("r", "d.x", ["d.x"])._replace(location=Location(source, 7, 1))
    place, end = Location(source, 12, 17), Position(12, 20)
    reference = PackageReference(rule.key, "root[1].spec.endpointName", "d", "x", place, end)
    package = replace(a_package("p", rule, requires=["d"]), references=(reference,))
    of_label, of_endpoint = problems(a_package("d"), package).violations
    assert (of_label.path, str(of_label.location)) == ("associations", "p@1.4.0/rules.yaml:7:1")
    assert (of_endpoint.path, str(of_endpoint.location), of_endpoint.end) == (
        "root[1].spec.endpointName",
        "p@1.4.0/rules.yaml:12:17",
        end,
    )
    assert {(each.kind, each.code) for each in (of_label, of_endpoint)} == {
        ("NotificationRule", "package-lacks-object")
    }


def test_all_problems_are_told_at_once() -> None:
    found = problems(
        a_package("p", an_object("Label", "env", color="red"), an_object("Task", "t", ["q.env"])),
        a_package("q", an_object("Label", "env", color="blue"), an_object("Task", "t", ["p.x"]), requires=["p"]),
    )
    assert ([each.code for each in found.violations], len(found.differing)) == (
        ["package-not-required", "package-lacks-object"],
        1,
    )


def test_environment_references_follow_their_labels() -> None:
    def references(*positions: int) -> tuple[EnvReference, ...]:
        return tuple(EnvReference(f"spec.associations[{position}].name", "k", None, "x") for position in positions)

    labels = [an_object("Label", name) for name in "ab"]
    item = an_object("Bucket", "raw", ["a", "b", "d.c"])._replace(
        env_references=(EnvReference("spec.name", "n", None, "raw"), *references(0, 1))
    )
    other = an_object("Bucket", "raw", ["x"])._replace(env_references=references(0))
    [*_, bucket, _] = composed(
        a_package("d", an_object("Label", "c")),
        a_package("p", *labels, item, requires=["d"]),
        a_package("c", an_object("Label", "x"), other),
    ).objects
    assert [label.name for label in bucket.associations] == ["c.x", "d.c", "p.a", "p.b"]
    assert bucket.env_references == (item.env_references[0], *references(2, 3, 0))


def test_values_of_sources_that_are_other_names_are_left_out() -> None:
    written = tuple(WrittenValue(pointer, "{}") for pointer in ("/metadata/name", "/spec/endpointName", "/spec/every"))
    rule = a_rule("r", "hook")._replace(written=written)
    *_, item = composed(a_package("p", an_object(PAGER, "hook"), rule)).objects
    assert [each.pointer for each in item.written] == ["/spec/every"]


def test_sources_are_those_of_all_packages() -> None:
    assert composed(a_package("q"), a_package("p")).sources == ("q@1.0.0/package.yaml", "p@1.0.0/package.yaml")
