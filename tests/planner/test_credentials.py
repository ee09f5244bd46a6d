"""Credentials never get into a plan: not its own, not what is said of it."""

from typing import Any

import pytest

from planner_svc.credentials import refuse_written_secrets
from services.core.errors import RequestInvalid
from services.core.model import Desired, Key, Package
from services.drivers.embedded.kinds import EMBEDDED
from tests.planner.world import an_object

CANARY = "canary-8a1f"
NAMED = {"secretRef": {"key": "k"}}

SENSITIVE = [(kind, path[1:]) for kind, traits in EMBEDDED.kinds.items() for path in traits.sensitive_paths]


def refuse(kind: str, field: str, value: Any, skip: frozenset[Key] = frozenset()) -> None:
    package = Package((an_object("Label", "l"), an_object(kind, "e", **{field: value})))
    refuse_written_secrets(Desired(package, skip), EMBEDDED)


@pytest.mark.parametrize(("kind", "field"), SENSITIVE)
@pytest.mark.parametrize("value", [CANARY, [CANARY], {"secretRef": CANARY}, {**NAMED, "text": CANARY}, 17])
def test_a_credential_itself_is_refused_with_its_place_and_the_way_out(kind: str, field: str, value: Any) -> None:
    with pytest.raises(RequestInvalid) as caught:
        refuse(kind, field, value)
    assert f"{field} of {kind} 'e'" in str(caught.value)
    assert "{secretRef: {key: KEY}}" in str(caught.value)
    assert CANARY not in f"{caught.value} {caught.value.metadata}"


@pytest.mark.parametrize(("kind", "field"), SENSITIVE)
@pytest.mark.parametrize("value", [NAMED, "", None])
def test_the_name_of_a_secret_is_none(kind: str, field: str, value: Any) -> None:
    refuse(kind, field, value)


def test_an_object_that_is_skipped_may_hold_anything() -> None:
    """It is in no plan."""
    refuse("NotificationEndpointSlack", "token", CANARY, frozenset({Key("NotificationEndpointSlack", "")}))


def test_of_many_only_the_first_are_named() -> None:
    """An error travels in trailers, which hold 8 KiB."""
    many = Package(tuple(an_object("NotificationEndpointSlack", f"s{n}", token=CANARY) for n in range(500)))
    with pytest.raises(RequestInvalid, match="and 490 more"):
        refuse_written_secrets(Desired(many), EMBEDDED)
