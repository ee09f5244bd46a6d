"""The kinds that are listed whole (docs/drivers.md)."""

from dataclasses import replace

import pytest

from services.drivers.embedded.kinds import EMBEDDED
from services.engine.list_scope import listed_whole

DASHBOARD, RULE, UNSUPPORTED = "Dashboard", "NotificationRule", "Rocket"

PLATFORM = replace(
    EMBEDDED,
    kinds={
        **EMBEDDED.kinds,
        **{kind: replace(EMBEDDED.kinds[kind], costly_listing=True) for kind in (DASHBOARD, RULE)},
        UNSUPPORTED: replace(EMBEDDED.kinds["Task"], kind=UNSUPPORTED, costly_listing=True),
    },
)


@pytest.mark.parametrize(
    ("deleted", "costly"),
    [
        (set(), []),
        ({"Label"}, [DASHBOARD, RULE, UNSUPPORTED]),
        ({"Task", DASHBOARD}, [UNSUPPORTED]),
        ({"NotificationEndpointHTTP"}, [RULE, UNSUPPORTED]),
        ({UNSUPPORTED}, [UNSUPPORTED]),
    ],
)
def test_a_costly_kind_is_listed_where_deletions_may_change_it(deleted: set[str], costly: list[str]) -> None:
    cheap = sorted(PLATFORM.kinds.keys() - {DASHBOARD, RULE, UNSUPPORTED})
    assert listed_whole(PLATFORM.kinds, deleted, PLATFORM) == sorted([*cheap, *costly])
    assert listed_whole([DASHBOARD, "Task"], deleted, PLATFORM) == sorted(["Task", *({DASHBOARD} & set(costly))])
