"""What a plan changes of resources that no stack owns."""

from collections.abc import Sequence

from planner_svc.changes.differences import Differences
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Match, Matching
from services.core.errors import ReplacementRefused
from services.core.model import Conflict, PlatformTraits, Undo


def conflicts_of(matching: Matching, differences: Differences, platform: PlatformTraits) -> tuple[Conflict, ...]:
    """The unowned resources that a plan overwrites or replaces (docs/reference/engine.md, "Matching")."""
    return tuple(
        Conflict(
            match.key,
            match.live.id,
            f"{match.live_key} is on the platform already, no stack owns it,"
            f" and {_change(match, differences, platform)}",
        )
        for match in matching.adopted
        if match.live and (differences.changed.get(match.key) or match.key in differences.replaced)
    )


def _change(match: Match, differences: Differences, platform: PlatformTraits) -> str:
    if match.key in differences.replaced and match.live:
        is_lost = platform.kinds[match.live.kind].delete_undo is Undo.NONE
        and_data = " and lose its data" if is_lost else ""
        return f"it will be replaced{and_data}, as {differences.replaced[match.key]} cannot change"
    lost = f", so it loses {loss.data}" if (loss := differences.losses.get(match.key)) else ""
    fields = ", ".join(change.path.lstrip("/") for change in differences.changed[match.key])
    return f"its {fields} will be overwritten{lost}"


def refuse_replacements(desired: Desired, conflicts: Sequence[Conflict], differences: Differences) -> None:
    """
    Refuse to replace unowned resources, unless the request allows it.

    Raises:
        ReplacementRefused: Names the resources that would be replaced, and why.
    """
    replaced = [conflict for conflict in conflicts if conflict.key in differences.replaced]
    if replaced and not desired.options.allow_replace:
        raise ReplacementRefused([(conflict.key.kind, conflict.key.name, conflict.message) for conflict in replaced])
