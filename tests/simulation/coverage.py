"""The names of all situations that runs should reach, as the trace counts them (docs/simulation.md)."""

from collections.abc import Collection, Mapping

from pkger.model.v1 import operation_pb2

from applier_svc.failpoints import NAMES as FAILPOINTS
from services.core.errors import Reason
from services.engine.operation import OperationState
from services.engine.step_state import TRANSITIONS, StepState
from tests.simulation.bad_driver import BAD_ANSWERS, BAD_LISTS
from tests.simulation.faults import BY_FEATURE, CODES, WORDS
from tests.simulation.features import FEATURES
from tests.simulation.scenario import EDITS, SERVERS
from tests.simulation.situations import SITUATIONS

EFFECTS: Mapping[str, tuple[str, ...]] = {
    "kills": ("kill applier", *(f"kill applier at {name}" for name in FAILPOINTS)),
    "peer_kills": tuple(f"kill {name}" for name in SERVERS),
    "stops": ("stop inside a callback", "stop applier", *(f"stop {name}" for name in SERVERS)),
    **{feature: tuple(f"fault {word}" for word in words) for feature, words in BY_FEATURE.items()},
    "codes": (*(f"fault {word}" for word in CODES), *SITUATIONS[10]),
    "late": ("fault late", "a token is raised", *SITUATIONS[17]),
    "very_late": ("fault very_late", "fault later than settle"),
    "cancel": ("client cancels", *SITUATIONS[13]),
    "leave": ("client leaves",),
    "plans": ("client plan",),
    "skip": ("client skips", *SITUATIONS[8]),
    "secrets": ("effect put_secret done",),
    "replace": tuple(
        f"replacement that {order} first and {ground} be undone"
        for order in ("creates", "deletes")
        for ground in ("can", "cannot")
    ),
    "reject": ("platform refused create", "platform refused update"),
    "keep": ("platform refused delete",),
    "doubt": ("platform has doubt",),
    "busy": ("platform has busy",),
    "natural_key": ("creation by NATURAL_KEY",),
    "search": ("creation by SEARCH",),
    "no_fence": ("mutation without a fence",),
    "stacks": ("operations on several stacks",),
    "rivals": ("error STACK_LEASED",),
    "same_names": ("operations on several stacks", *SITUATIONS[1], *SITUATIONS[2], *SITUATIONS[3], *SITUATIONS[6][:1]),
    "share": SITUATIONS[16],
    "person": (*(f"person {do}" for do in EDITS), *SITUATIONS[4], *SITUATIONS[5], *SITUATIONS[6][1:]),
    "bad_lists": tuple(f"bad driver: {way}" for way in BAD_LISTS),
    "bad_answers": tuple(f"bad driver: {way}" for way in BAD_ANSWERS),
    "bad_describe": SITUATIONS[11],
    "clock": ("clock jumps", *SITUATIONS[12]),
    "backup": SITUATIONS[9],
    "install": (
        "client change",
        "client rollback",
        "package installed",
        "package moved",
        "package removed",
        "packages of a revision restored",
        "packages planned, ROLLED_BACK",
        "content of packages compared",
    ),
}
"""The names that runs with a feature have to reach."""

_RETRACTED = "only a step that was sent is retracted, and its intent is in the journal by then"
_NOT_IN_DOUBT = "the outcome of a step that was not sent is known"
_BLIND = "an applier that takes an operation over first records the outcome of an open intent as unknown"
_SENT_FIRST = "a step that is sent again gets a new intent before its outcome"
_IN_ORDER = "steps and undos run in order, so the resource that one of them removes still exists"
_NOT_HEARD = "an applier has to die after a cancel that did not reach the store, before it rolls back"
_NOT_ASKED = "no client of the simulation sends a request that leads to it"
_IN_CALM = "the operator decides after all faults have stopped, when no process is killed"

UNREACHABLE: dict[str, str] = {
    "blocked BLOCKED_REASON_DEFECT": "a defect is a violation",
    "operation CANCELLED": _NOT_ASKED,
    "error INTERNAL": "a defect is a violation",
    "error UNAUTHENTICATED": "no door stands between processes in memory",
    "error TOO_MANY_CALLS": "no door stands between processes in memory",
    "step PLANNED -> PLANNED": _RETRACTED,
    "step DONE -> DONE": _RETRACTED,
    "step PLANNED -> UNKNOWN": _NOT_IN_DOUBT,
    "step SKIPPED -> UNKNOWN": _NOT_IN_DOUBT,
    "step DONE -> UNDO_UNKNOWN": _NOT_IN_DOUBT,
    "step UNDO_FAILED -> UNDO_UNKNOWN": _NOT_IN_DOUBT,
    "step INTENT -> UNDO_INTENT": _BLIND,
    "step INTENT -> UNDONE": _BLIND,
    "step INTENT -> UNDO_FAILED": _BLIND,
    "step INTENT -> UNDO_UNKNOWN": _BLIND,
    **{f"step UNKNOWN -> {state}": _SENT_FIRST for state in ("FAILED", "UNDONE", "UNDO_FAILED", "UNDO_UNKNOWN")},
    "step UNDO_UNKNOWN -> UNDO_FAILED": _SENT_FIRST,
    "step UNKNOWN -> UNDO_INTENT": "a step with an unknown outcome is not undone; older journals undid such secrets",
    "step PLANNED -> DONE": _IN_ORDER,
    "step DONE -> UNDONE": _IN_ORDER,
    **{f"step SKIPPED -> {state}": _NOT_HEARD for state in ("INTENT", "DONE", "FAILED", "PLANNED", "SKIPPED")},
    **{f"killed with a step {state}": _IN_CALM for state in ("GIVEN_UP", "KEPT", "UNDO_GIVEN_UP")},
    **{
        f"error {reason}": _NOT_ASKED
        for reason in (
            Reason.SOURCE_UNDECODABLE,
            Reason.SOURCE_TOO_LARGE,
            Reason.SOURCE_UNREADABLE,
            Reason.ENCODING_INVALID,
            Reason.STACK_EXISTS,
            Reason.STACK_NOT_EMPTY,
            Reason.STACK_CHANGED,
            Reason.PLATFORM_UNKNOWN,
            Reason.ORG_UNKNOWN,
            Reason.DIGEST_MISMATCH,
            Reason.PACKAGE_EMPTY,
            Reason.VALUES_MISSING,
            Reason.REPLACEMENT_REFUSED,
            Reason.DELETES_EXCEEDED,
            Reason.RESOURCE_NOT_FOUND,
            Reason.PLAN_TOO_LARGE,
            Reason.REQUEST_ID_REUSED,
            Reason.REPOSITORY_NOT_FOUND,
            Reason.REPOSITORY_INVALID,
            Reason.REPOSITORY_UNAVAILABLE,
            Reason.PACKAGE_NOT_FOUND,
            Reason.RANGE_INVALID,
            Reason.PACKAGE_PINNED,
            Reason.REPOSITORY_IN_USE,
            Reason.DEFINITION_NOT_FOUND,
            Reason.DEFINITION_CHANGED,
            Reason.ACTION_SET_NOT_FOUND,
            Reason.ACTION_SET_EXISTS,
            Reason.ACTION_SET_UNFINISHED,
            Reason.ACTION_SET_NOT_COMPLETE,
            Reason.ACTION_SET_HAS_SNAPSHOTS,
            Reason.ARTIFACT_GONE,
            Reason.SNAPSHOT_NOT_FOUND,
            Reason.SNAPSHOT_CORRUPT,
            Reason.LIMIT_REACHED,
        )
    },
    "error CONTENT_REFUSED": "its platforms foresee no refusal",
    "error PLAN_EXPIRED": "a stored plan outlives every run",
}
"""Names that no seed reaches today, with the reason."""

_DONE = ("create", "update", "delete", "attach", "detach", "put_secret")
_UNDONE = ("delete", "update", "create", "detach", "attach", "delete_secret")
"""The mutations as which steps, and their inverses, are sent."""


_KILLED = ("PREPARING", "APPLYING", "ROLLING_BACK", "BLOCKED")
"""States of an operation in which its applier may be killed."""


def names(features: Collection[str] = tuple(FEATURES)) -> tuple[str, ...]:
    """All names that runs with *features* should reach."""
    reasons = [name for name, number in operation_pb2.BlockedReason.items() if number]
    return tuple(
        dict.fromkeys(
            [
                *(f"failpoint {name}" for name in FAILPOINTS),
                *(f"step {before} -> {after}" for before, ways in TRANSITIONS.items() for after in ways.values()),
                *(f"operation {state}" for state in OperationState),
                *(f"blocked {reason}" for reason in reasons),
                *(f"decision {decision}" for decision, number in operation_pb2.Decision.items() if number),
                *(f"error {reason}" for reason in Reason),
                *(f"killed in {state}" for state in _KILLED),
                *(f"killed with a step {state}" for state in StepState),
                *(f"fault {word}" for word in sorted(WORDS)),
                *(name for feature in features for name in EFFECTS[feature]),
                *(f"effect {verb} done" for verb in _DONE),
                *(f"effect {verb} undone" for verb in _UNDONE),
                *(f"client {do}" for do in ("apply", "plan", "uninstall", "delete")),
            ]
        )
    )


def missing(counts: Mapping[str, int], features: Collection[str] = tuple(FEATURES)) -> list[str]:
    """Names that runs with *features* should have reached and did not, without those of ``UNREACHABLE``."""
    return [name for name in names(features) if not counts.get(name) and name not in UNREACHABLE]


def surprises(counts: Mapping[str, int]) -> list[str]:
    """Names of ``UNREACHABLE`` that were reached."""
    return [name for name in UNREACHABLE if counts.get(name)]
