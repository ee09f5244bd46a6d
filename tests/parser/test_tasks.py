"""The schedule of tasks (docs/reference/package-format.md, "Durations" and "Task options")."""

import pytest

from services.kinds.summary import summary_document
from tests.parser.parsing import document, objects


@pytest.mark.parametrize(
    "text",
    [
        document("Task", "every: 1mo\noffset: 1y\nquery: x()"),
        document("Task", "every: 1h\nquery: 'option task = {every: 1mo, offset: 1y}'", version="v2alpha2"),
    ],
)
def test_months_and_years_are_kept_in_spec_and_summary(text: str) -> None:
    [task] = objects(text)
    [entry] = summary_document([task], {})["summaryTask"]
    for shown in (task.spec.value, entry):
        assert (shown["every"], shown["offset"]) == ("1mo", "1y")


def test_months_and_years_of_tasks_differ_from_any_number_of_days() -> None:
    specs = {objects(document("Task", f"every: {every}\nquery: x()"))[0].spec for every in ("1mo", "28d", "1y", "364d")}
    assert len(specs) == 4


def test_other_durations_of_tasks_are_equal_if_their_lengths_are() -> None:
    first, second = (objects(document("Task", f"every: {every}\nquery: x()"))[0] for every in ("90m", "1h30m"))
    assert first.spec == second.spec
