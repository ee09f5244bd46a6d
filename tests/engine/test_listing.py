"""Which kinds are listed whole (docs/drivers.md)."""

from dataclasses import replace

import pytest

from services.drivers.embedded.kinds import EMBEDDED
from services.engine.listing import listed_whole

DASHBOARD, RULE, FOREIGN = "Dashboard", "NotificationRule", "Rocket"

PLATFORM = replace(
    EMBEDDED,
    kinds={
        **EMBEDDED.kinds,
        **{kind: replace(EMBEDDED.kinds[kind], costly_listing=True) for kind in (DASHBOARD, RULE)},
        FOREIGN: replace(EMBEDDED.kinds["Task"], kind=FOREIGN, costly_listing=True),
    },
)


@pytest.mark.parametrize(
    ("deleted", "costly"),
    [
        (set(), []),
        ({"Label"}, [DASHBOARD, RULE, FOREIGN]),
        ({"Task", DASHBOARD}, [FOREIGN]),
        ({"NotificationEndpointHTTP"}, [RULE, FOREIGN]),
        ({FOREIGN}, [FOREIGN]),
    ],
)
def test_a_costly_kind_is_listed_where_deletions_may_change_it(deleted: set[str], costly: list[str]) -> None:
    cheap = sorted(PLATFORM.kinds.keys() - {DASHBOARD, RULE, FOREIGN})
    assert listed_whole(PLATFORM.kinds, deleted, PLATFORM) == sorted([*cheap, *costly])
    assert listed_whole([DASHBOARD, "Task"], deleted, PLATFORM) == sorted(["Task", *({DASHBOARD} & set(costly))])
