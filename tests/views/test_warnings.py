"""Warnings that differ only in their places are shown as one."""

from dataclasses import replace

from pkger.model.v1 import plan_pb2

from services.core.model import Location, Severity, Violation
from services.rpc.convert.objects import violation_to_pb
from services.views.warnings import repeated, warning_lines

WARNING = Violation(
    "Dashboard",
    "root[0].spec.charts[0].colour",
    "no such field",
    Location("a.yml", 3, 5),
    "unknown-field",
    Severity.WARNING,
)


def at(warning: Violation, source: str, line: int, path: str) -> Violation:
    return replace(warning, path=path, location=Location(source, line, 5))


ELSEWHERE = [
    at(WARNING, "a.yml", 9, "root[0].spec.charts[1].colour"),
    at(WARNING, "b.yml", 3, "root[12].spec.charts[0].colour"),
]
OTHERS = [
    at(WARNING, "a.yml", 3, "root[0].spec.colour"),
    replace(WARNING, reason="another reason"),
    replace(WARNING, code="value-ignored"),
    replace(WARNING, kind="Task"),
]


def test_places_are_counted_and_others_stay_apart() -> None:
    shown = repeated([WARNING, OTHERS[0], *ELSEWHERE, *OTHERS[1:]])
    assert [(each.first, each.others) for each in shown] == [(WARNING, 2), *((other, 0) for other in OTHERS)]


def test_a_plan_has_one_line_for_each_unless_all_places_are_asked_for() -> None:
    remarks = plan_pb2.PlanRemarks(
        package_warnings=map(violation_to_pb, [WARNING, *ELSEWHERE]), warnings=["of the plan", "of the plan"]
    )
    assert warning_lines(remarks) == [
        "a.yml:3:5: root[0].spec.charts[0].colour: no such field (and at 2 other places)",
        "of the plan",
        "of the plan",
    ]
    assert len(warning_lines(remarks, full=True)) == 5
    assert repeated([WARNING, ELSEWHERE[0]])[0].more == " (and at 1 other place)"
