"""The data that a policy protects from updates (docs/reference/engine.md, "Data losses")."""

from dataclasses import replace

from planner_svc.changes.differences import loss_in
from planner_svc.changes.ignored_fields import with_values_of
from planner_svc.changes.protection import protected_keys
from planner_svc.matching.match import Match, Matching
from services.core.model import DataLoss, Key, StackRecord


def with_protected_data(matching: Matching, stack: StackRecord) -> tuple[Matching, dict[Key, DataLoss]]:
    """
    *matching*, where a protected object keeps the live value of a field whose change would delete data.

    Returns:
        The matches, and the data that each of these objects would lose, sorted by key.

    Raises:
        UnreadableSpecError: The spec of a live resource cannot be read.
    """
    losses = {key: loss for key in sorted(protected_keys(matching, stack)) if (loss := loss_in(matching.matches[key]))}
    if not losses:
        return matching, {}
    changed = {key: _without_loss(matching.matches[key], loss) for key, loss in losses.items()}
    return replace(matching, matches={**matching.matches, **changed}), losses


def _without_loss(match: Match, loss: DataLoss) -> Match:
    assert match.live and match.desired  # noqa: S101, PT018 - an update has both
    spec = with_values_of(match.live.spec, match.desired.spec, [loss.path])
    return match._replace(desired=match.desired._replace(spec=spec))
