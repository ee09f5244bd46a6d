"""Scenarios drawn from a seed."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from applier_svc.failpoints import NAMES as FAILPOINTS
from tests.simulation.draws import Draws
from tests.simulation.features import FEATURES, holds
from tests.simulation.scenario import (
    EDITS,
    IN_FLIGHT,
    LABELS,
    OBJECTS,
    OTHER_KINDS,
    PACKAGE_STACK,
    PACKAGES,
    SECRETS,
    SERVERS,
    Action,
    Client,
    Crash,
    Edit,
    Item,
    Jump,
    PackageChange,
    Platform,
    Scenario,
)

SHARES = (0.15, 1 / 3, 0.5)
"""
The share of features that a seed switches on (swarm testing): with all features on, hardly any operation gets far.
Seeds with the larger shares reach combinations that are rare otherwise.
"""


_ACTION_SECONDS = 0.7
"""Seconds that an action takes without faults, roughly."""


def drawn(seed: int, allowed: Collection[str], *, known: bool = False) -> Scenario:
    """
    The scenario of *seed*.

    Args:
        seed: The seed.
        allowed: Features that may be switched on; if they are few, most of them are.
        known: Whether features that today's engine fails with (``features.KNOWN``) may be on together.
    """
    draws = Draws(seed)
    features = _features(draws, allowed, known)
    appliers = draws.between("appliers", 1, 3)
    clients = tuple(_client(draws, number, features) for number in range(_stacks(draws, features)))
    if "rivals" in features:
        clients = (*clients, _client(draws, 0, features, "'"))
    if "install" in features:
        rivals = ("", "'") if "rivals" in features else ("",)
        # Alone, so that a rollback can be compared with what was before.
        is_alone = draws.chance("packages alone", 0.3)
        clients = (*(() if is_alone else clients), *(_package_client(draws, features, each) for each in rivals))
    return Scenario(
        seed,
        tuple(sorted(features)),
        appliers,
        draws.choice("lease", (9, 30)),
        _platform(draws, features),
        clients,
        _crashes(draws, features, appliers),
        _edits(draws, features, clients),
        _jumps(draws, features, appliers),
    )


def _features(draws: Draws, allowed: Collection[str], known: bool) -> frozenset[str]:
    share = max(draws.choice("share", SHARES), min(0.75, 3 / max(len(allowed), 1)))
    features: frozenset[str] = frozenset()
    for feature in FEATURES:
        is_on = draws.chance(f"feature {feature}", share)
        if is_on and feature in allowed and (known or holds(features | {feature})):
            features |= {feature}
    return features


def _stacks(draws: Draws, features: Collection[str]) -> int:
    several = draws.between("stacks", 2, 3)
    return several if {"stacks", "same_names", "share"} & set(features) else 1


def _client(draws: Draws, number: int, features: Collection[str], rival: str = "") -> Client:
    stack = f"s{number}"
    name = f"{stack}{rival}"
    actions = tuple(
        _action(draws, f"{name} {index}", features) for index in range(draws.between(f"actions {name}", 1, 4))
    )
    return Client(stack, "" if {"same_names", "share"} & set(features) else f"{stack} ", actions, rival)


def _package_client(draws: Draws, features: Collection[str], rival: str) -> Client:
    name = f"{PACKAGE_STACK}{rival}"
    actions = tuple(
        _package_action(draws, f"{name} {index}", features, is_first=not index)
        for index in range(draws.between(f"actions {name}", 2, 6))
    )
    return Client(PACKAGE_STACK, "", actions, rival)


def _package_action(draws: Draws, label: str, features: Collection[str], *, is_first: bool) -> Action:
    """
    As ``_action``, with other verbs: the first one installs.

    Objects are not skipped, and no secrets are written.
    """
    action = replace(_action(draws, label, features), items=(), skip=(), secrets=(), applies=1, lag=0.0)
    kind = draws.fraction(f"do packages {label}")
    if kind < 0.12 and not is_first:
        return replace(action, do="uninstall" if kind < 0.06 else "delete")
    if kind < 0.3 and not is_first:
        return replace(action, do="rollback", revision=draws.choice(f"revision {label}", (1, 1, 1, 2, 2, 3)))
    if kind < 0.34 and not is_first:
        # Refused while the stack has packages; else it has nothing to do.
        return replace(action, do="apply")
    return replace(
        action,
        do="change",
        packages=_package_changes(draws, label, is_first=is_first),
        consents=draws.chance(f"consents {label}", 0.7),
        applies=draws.between(f"applies {label}", 1, 2) if "plans" in features else 1,
        lag=round(draws.spread(f"lag {label}", 0.01, 10.0), 3) if "plans" in features else 0.0,
    )


def _package_changes(draws: Draws, label: str, *, is_first: bool) -> tuple[PackageChange, ...]:
    """Changes of one to four packages."""
    if draws.chance(f"all packages {label}", 0.15) and not is_first:
        return (PackageChange("update_all"),)
    names = draws.some(f"packages {label}", list(PACKAGES), 0.4) or [draws.choice(f"package {label}", list(PACKAGES))]
    changes = []
    for name in names:
        verbs = ("install",) if is_first else ("install", "install", "install", "install", "update", "uninstall")
        do = draws.choice(f"do {name} {label}", verbs)
        # Low versions first, so that later changes move them.
        versions = PACKAGES[name][:1] * 3 if is_first else PACKAGES[name]
        version = draws.choice(f"version {name} {label}", ("", *versions))
        changes.append(PackageChange(do, name, "" if do == "uninstall" else version))
    return tuple(changes)


def _action(draws: Draws, label: str, features: Collection[str]) -> Action:
    kind = draws.fraction(f"do {label}")
    ends = kind < 0.15
    do = "plan" if kind < 0.5 and "plans" in features else "apply"
    if ends:
        do = "delete" if kind < 0.09 else "uninstall"
    items = () if ends else _items(draws, label, features)
    cancelled, left = draws.chance(f"cancel {label}", 0.4), draws.chance(f"leave {label}", 0.4)
    return Action(
        do,
        items,
        pause=round(draws.spread(f"pause {label}", 0.01, 20.0), 3),
        skip=tuple(draws.some(f"skip {label}", list(OBJECTS), 0.2)) if "skip" in features and not ends else (),
        secrets=tuple(draws.some(f"secrets {label}", SECRETS, 0.5)) if "secrets" in features and not ends else (),
        cancel_after=round(draws.spread(f"cancelled {label}", 0.001, 1.0), 3)
        if "cancel" in features and cancelled
        else -1.0,
        cancel_at=draws.between(f"cancelled at {label}", 1, 12) if "cancel" in features and cancelled else 1,
        leave_after=round(draws.spread(f"patience {label}", 0.05, 10.0), 3) if "leave" in features and left else 0.0,
        applies=draws.between(f"applies {label}", 1, 2) if do == "plan" else 1,
        lag=round(draws.spread(f"lag {label}", 0.01, 10.0), 3) if do == "plan" else 0.0,
        is_backed_up="backup" in features and draws.chance(f"backup {label}", 0.4),
        restored_after=round(draws.spread(f"restored {label}", 0.01, 20.0), 3)
        if "backup" in features and "no_fence" not in features and draws.chance(f"restore {label}", 0.4)
        else -1.0,
    )


def _items(draws: Draws, label: str, features: Collection[str]) -> tuple[Item, ...]:
    items = []
    chosen = draws.some(f"items {label}", list(OBJECTS), 0.7)
    for name in OBJECTS:
        version, labels = draws.below(f"version {label}", 4), draws.some(f"labels {label}", LABELS, 0.4)
        if "share" in features and draws.chance(f"shared {label}", 0.85):
            version = 0
        explicit = draws.chance(f"explicit {label}", 0.5)
        renamed = draws.chance(f"renamed {name} {label}", 0.3) and name in ("raw", *OTHER_KINDS)
        turned = draws.chance(f"turned {label}", 0.5) and name in OTHER_KINDS
        is_needed = name == "hook" and "alarm" in chosen
        is_replaced = name == "raw" and "replace" in features
        if name in chosen or is_needed or is_replaced:
            wanted = tuple(each for each in labels if each in chosen and name not in LABELS)
            item = Item(name, version, wanted)
            if "replace" in features:
                item = Item(name, version, wanted, explicit and name == "raw", renamed, turned)
            items.append(item)
    return tuple(items)


def _platform(draws: Draws, features: Collection[str]) -> Platform:
    identity = "SEARCH" if "search" in features else "NATURAL_KEY" if "natural_key" in features else "NATIVE"
    return Platform(
        identity,
        fences="no_fence" not in features,
        batch=draws.choice("batch", (1, 2, 500)),
        concurrency=draws.choice("concurrency", (1, 2, 4)),
        refusals=draws.choice("refusals", (0.03, 0.08, 0.2)) if "reject" in features else 0.0,
        kept=draws.choice("kept", (0.05, 0.2, 0.5)) if "keep" in features else 0.0,
        doubts=draws.choice("doubts", (0.02, 0.1, 0.3)) if "doubt" in features else 0.0,
        throttled=draws.choice("patience", (0.02, 0.1, 0.3)) if "busy" in features else 0.0,
    )


def _crashes(draws: Draws, features: frozenset[str], appliers: int) -> tuple[Crash, ...]:
    names = [f"applier{number}" for number in range(appliers)]
    kills = [_crash(draws, f"kill {n}", names) for n in range(draws.between("kills", 1, 4))]
    peers = [_crash(draws, f"peer kill {n}", SERVERS) for n in range(draws.between("peer kills", 1, 2))]
    if draws.chance("outage", 0.3):
        # Longer than the applier retries an undo.
        peers[0] = replace(peers[0], node="platform", seconds=round(draws.spread("outage seconds", 300.0, 1200.0), 3))
    stops = [
        _crash(draws, f"stop {n}", [*names, *names, *SERVERS], is_stop=True)
        for n in range(draws.between("stops", 1, 3))
    ]
    flights = [_crash_in_flight(draws, f"flight {n}", names) for n in range(draws.between("flights", 1, 3))]
    return (
        *(kills if "kills" in features else ()),
        *(peers if "peer_kills" in features else ()),
        *(stops if "stops" in features else ()),
        *(flights if {"kills", "very_late"} <= features else ()),
    )


def _crash(draws: Draws, label: str, nodes: Sequence[str], *, is_stop: bool = False) -> Crash:
    node, failpoint = draws.choice(f"{label} node", nodes), draws.choice(f"{label} failpoint", FAILPOINTS)
    at, nth = round(draws.spread(f"{label} at", 20, 3000)), draws.between(f"{label} nth", 1, 3)
    seconds = draws.spread(f"{label} seconds", 5.0, 70.0) if is_stop else draws.spread(f"{label} seconds", 0.1, 40.0)
    if node.startswith("applier") and draws.chance(f"{label} is at failpoint", 0.5):
        return Crash(node, 0, failpoint, nth, round(seconds, 3), is_stop)
    return Crash(node, at, seconds=round(seconds, 3), is_stop=is_stop)


def _edits(draws: Draws, features: Collection[str], clients: Sequence[Client]) -> tuple[Edit, ...]:
    if "person" not in features:
        return ()
    edits = []
    words = [word for word in EDITS if "secrets" in features or "secret" not in word]
    for number in range(draws.between("edits", 4, 16)):
        label = f"edit {number}"
        do = draws.choice(f"{label} do", words)
        name = draws.choice(f"{label} name", SECRETS if "secret" in do else list(OBJECTS))
        prefix = "" if "secret" in do else draws.choice(f"{label} stack", clients).prefix
        at = round(_some_time(draws, label, clients), 3)
        if "tach" in do:
            theirs = draws.choice(f"{label} stack of label", clients).prefix
            edits.append(Edit(at, do, name, prefix, draws.choice(f"{label} label", LABELS), theirs))
        else:
            edits.append(Edit(at, do, name, prefix))
    return tuple(edits)


def _some_time(draws: Draws, label: str, clients: Sequence[Client]) -> float:
    """A time at which a client probably has an operation; at a time drawn evenly, mostly none runs."""
    actions = draws.choice(f"{label} client", clients).actions
    number = draws.below(f"{label} action", len(actions))
    began = sum(action.pause for action in actions[: number + 1]) + number * _ACTION_SECONDS
    return began + draws.spread(f"{label} at", 0.01, 3.0)


def _jumps(draws: Draws, features: Collection[str], appliers: int) -> tuple[Jump, ...]:
    if "clock" not in features:
        return ()
    # Where the clock of the store jumps, only a fence keeps two appliers apart (faults.py).
    nodes = [*(["stack"] if "no_fence" not in features else []), *(f"applier{number}" for number in range(appliers))]
    jumps = []
    for number in range(draws.between("jumps", 1, 3)):
        at = round(draws.spread(f"jump {number} at", 0.1, 60.0), 3)
        seconds = draws.choice(f"jump {number} seconds", (-3600.0, -40.0, 40.0, 3600.0))
        jumps.append(Jump(at, draws.choice(f"jump {number} node", nodes), seconds))
    return tuple(jumps)


def _crash_in_flight(draws: Draws, label: str, nodes: Sequence[str]) -> Crash:
    """A kill while a write is in flight, which may then arrive long after; other kills hardly ever meet one."""
    node, nth = draws.choice(f"{label} node", nodes), draws.between(f"{label} nth", 1, 8)
    return Crash(node, 0, IN_FLIGHT, nth, round(draws.spread(f"{label} seconds", 0.1, 10.0), 3))
