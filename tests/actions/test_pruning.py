"""Which phases may delete resources."""

from typing import Any

import pytest

from services.actions.definitions import ActionObject, Phase
from services.actions.pruning import pruned_stack

FLEET = ActionObject("Stack", "fleet")
CPU = ActionObject("Check", "cpu", "fleet")


@pytest.mark.parametrize(
    ("arguments", "target", "stack"),
    [
        ({}, FLEET, ""),
        ({"prune": False}, FLEET, ""),
        ({"prune": None}, FLEET, ""),
        ({"prune": True}, FLEET, "fleet"),
        ({"prune": "{{ options.prune }}"}, FLEET, "fleet"),
        ({"prune": True}, CPU, "fleet"),
        ({"prune": True}, None, ""),
        ({"prune": True, "stack": "{{ options.stack }}"}, FLEET, "{{ options.stack }}"),
        ({"prune": True, "stack": "copy"}, None, "copy"),
    ],
)
def test_a_restore_deletes_unless_it_says_that_it_does_not(
    arguments: dict[str, Any], target: ActionObject | None, stack: str
) -> None:
    assert pruned_stack(Phase("apply", "RestoreStack", arguments=arguments), target) == stack


def test_other_functions_delete_no_resources() -> None:
    assert pruned_stack(Phase("export", "ExportStack", arguments={"prune": True}), FLEET) == ""
