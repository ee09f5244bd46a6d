"""What a caller leaves out (service.md 1.2 and 5.2)."""

import pytest

from planner_svc.skipping import skipped_keys
from services.core.errors import RequestInvalid
from services.core.model import Key

CHECKS = {"CheckDeadman", "CheckThreshold"}
ENDPOINTS = {"NotificationEndpointHTTP", "NotificationEndpointPagerDuty", "NotificationEndpointSlack"}


@pytest.mark.parametrize(
    ("kind", "left_out"),
    [
        ("Label", {"Label"}),
        ("NotificationRule", {"NotificationRule"}),
        ("Check", CHECKS),
        ("CheckDeadman", CHECKS),
        ("NotificationEndpoint", ENDPOINTS),
        ("NotificationEndpointSlack", ENDPOINTS),
    ],
)
@pytest.mark.parametrize("name", ["", "one"])
def test_the_kinds_of_a_family_are_left_out_together(kind: str, name: str, left_out: set[str]) -> None:
    assert skipped_keys([Key(kind, name)]) == {Key(each, name) for each in left_out}


@pytest.mark.parametrize(
    ("kind", "problem"),
    [("", "name a kind"), ("Lable", "'Lable' is no kind"), ("Package", "is no kind"), ("label", "is no kind")],
)
def test_what_is_no_kind_is_refused_with_its_place(kind: str, problem: str) -> None:
    with pytest.raises(RequestInvalid, match=problem) as caught:
        skipped_keys([Key("Label", ""), Key(kind, "one")])
    assert caught.value.metadata["field"] == "skip[1].kind"
