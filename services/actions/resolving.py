"""Resolves requests to run actions: into an action set that has all that it uses, or into what is wrong."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from services.actions.action_sets import compare_inputs
from services.actions.definitions import (
    NO_OBJECT,
    Action,
    ActionRun,
    ActionSet,
    Blueprint,
    ConfigMap,
    ConfigMapSource,
    Definition,
    DefinitionKind,
    SecretPlace,
    inputs_of,
)
from services.actions.life import ActionSetState
from services.actions.pinned import (
    LARGEST_PINNED,
    PinnedAction,
    PinnedActionSet,
    all_phases,
    pinned_text,
    with_versions,
    with_whole_target,
)
from services.actions.reading import (
    JsonPlace,
    Report,
    hint,
    listed,
    named_choice,
    quoted,
    rewrite_to_nearest,
)
from services.actions.signatures import SignatureTable
from services.actions.validation import StoredBlueprints, validate
from services.core.errors import ActionSetNotComplete, RequestInvalid
from services.core.model import Location, Violation
from services.kinds.diagnostics import DIAGNOSTICS, Code
from services.kinds.format.fields import Fault

MOST_DEFINITIONS = 100
"""How many definitions a request has at most."""

SHORTEST_SECRET = 4
LONGEST_SECRET = 65_536
"""Characters of a value that comes with the request; shorter ones could not be masked."""

_LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class RunRequest:
    """
    A request to run actions, whose definitions are valid by themselves.

    Attributes:
        documents: Its definitions as JSON values.
        definitions: Its definitions, in the same order.
        is_pinned: Whether the predecessor's blueprint runs, and not today's.
    """

    documents: Sequence[Any]
    definitions: Sequence[Definition]
    is_pinned: bool = False

    @property
    def position(self) -> int:
        """The position of the action set among the definitions."""
        return next(place for place, each in enumerate(self.definitions) if isinstance(each, ActionSet))

    @property
    def action_set(self) -> ActionSet:
        """The action set."""
        [action_set] = (each for each in self.definitions if isinstance(each, ActionSet))
        return action_set

    @property
    def blueprints(self) -> dict[str, Blueprint]:
        """The blueprints that take the place of stored ones, by name."""
        return {each.name: each for each in self.definitions if isinstance(each, Blueprint)}

    @property
    def config_maps(self) -> dict[str, ConfigMap]:
        """The config maps that take the place of stored ones, by name."""
        return {each.name: each for each in self.definitions if isinstance(each, ConfigMap)}


class NeededDefinitions(NamedTuple):
    """The names of the stored definitions that a request names, sorted."""

    blueprints: tuple[str, ...]
    config_maps: tuple[str, ...]


class StoredDefinitions(NamedTuple):
    """
    What is stored, each as a JSON value by its name. One that was not read may be there as None: it is offered in place
    of a name that there is not.
    """

    blueprints: Mapping[str, Any]
    config_maps: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EarlierActionSet:
    """
    A predecessor.

    Attributes:
        pinned: As it ran.
        state: How far it is.
        artifacts: What it left, by the index of the action and the name of the artifact.
    """

    pinned: PinnedActionSet
    state: ActionSetState
    artifacts: Mapping[tuple[int, str], Mapping[str, str]]


def read_request(
    documents: Sequence[Any], table: SignatureTable, is_pinned: bool = False
) -> RunRequest | tuple[Violation, ...]:
    """
    Read the definitions of a request to run actions.

    Args:
        documents: The definitions as JSON values: one action set, and blueprints and config maps for it.
        table: The functions that phases may call.
        is_pinned: Whether the predecessor's blueprint is to run, and not today's.

    Returns:
        The request, or what is wrong with its definitions.

    Raises:
        RequestInvalid: It has too many definitions, no action set or several, or no predecessor although *is_pinned*.
    """
    if len(documents) > MOST_DEFINITIONS:
        raise RequestInvalid("definitions", f"has {len(documents)} entries; give at most {MOST_DEFINITIONS}")
    kinds = [each.get("kind") if isinstance(each, dict) else None for each in documents]
    count = kinds.count(DefinitionKind.ACTION_SET)
    if count != 1:
        raise RequestInvalid("definitions", f"has {count or 'no'} action sets; give one, with what it uses")
    outcome = validate(documents, table, stored=None)
    if outcome.faults:
        return _violations(documents, outcome.faults)
    request = RunRequest(documents, tuple(each for each in outcome.definitions if each), is_pinned)
    if is_pinned and not request.action_set.predecessor:
        problem = "the action set has no from, so there is no blueprint of a predecessor; leave it out"
        raise RequestInvalid("pinned", problem)
    return request


def needed_definitions(request: RunRequest, predecessor: PinnedActionSet | None = None) -> NeededDefinitions:
    """The stored definitions that a request names, itself or by its predecessor."""
    action_set = request.action_set
    runs = [*action_set.actions, *([action_set.overrides] if action_set.overrides else [])]
    blueprints = {run.blueprint for run in runs if run.blueprint}
    if predecessor and not blueprints:
        blueprints = {each.blueprint for each in predecessor.actions}
    sources = [source for run in runs for source in run.config_maps.values()]
    config_maps = {source.name for source in sources if source.data is None}
    return NeededDefinitions(
        tuple(sorted(blueprints - request.blueprints.keys())),
        tuple(sorted(config_maps - request.config_maps.keys())),
    )


def resolve(
    request: RunRequest,
    stored: StoredDefinitions,
    earlier: EarlierActionSet | None,
    table: SignatureTable,
    time: str,
    suffix: str,
) -> PinnedActionSet | tuple[Violation, ...]:
    """
    Resolve a request: read all that it names, and fix it.

    Args:
        request: The request.
        stored: The definitions that it needs, as far as they are stored.
        earlier: Its predecessor; None: it has none.
        table: The functions that there are.
        time: Now, as RFC 3339 text in UTC.
        suffix: The end of the name, if it gives none: 5 lower-case letters and digits.

    Returns:
        The action set, or what is wrong, in order.

    Raises:
        ActionSetNotComplete: The predecessor is not complete.
        ValueError: There is a predecessor that the request does not name, or the other way round.
    """
    if bool(earlier) is not bool(request.action_set.predecessor):
        raise ValueError("a predecessor goes with an action set that names one")
    if earlier and earlier.state is not ActionSetState.COMPLETE:
        raise ActionSetNotComplete(earlier.pinned.name, earlier.state.lower())
    readings = _read_stored(stored, table)
    outcome = validate(request.documents, table, readings.blueprints)
    if outcome.faults:
        return _violations(request.documents, outcome.faults)
    resolver = _Resolver(request, readings, [*stored.config_maps], table)
    pinned = resolver.resolve(earlier, time, suffix)
    return pinned or _violations(request.documents, {request.position: resolver.report.faults})


def check_secrets(pinned: PinnedActionSet, secrets: Mapping[str, str]) -> None:
    """
    Compare the *secrets* of a request, by NAME.KEY, with those that the action set takes from it.

    Raises:
        RequestInvalid: One is missing, too short or too long, or no action takes it. No value is shown.
    """
    needed = {
        f"{name}.{key}"
        for action in pinned.actions
        for name, sources in action.secrets.items()
        for key, source in sources.items()
        if source.place is SecretPlace.REQUEST
    }
    for name in sorted(needed - set(secrets)):
        raise RequestInvalid("secrets", f"the action set takes {name} from the request; give its value")
    for name, value in sorted(secrets.items()):
        if name not in needed:
            takes = f"it takes {listed(sorted(needed))}" if needed else "it takes none"
            raise RequestInvalid("secrets", f"the action set takes no {quoted(name)} from the request; {takes}")
        if not SHORTEST_SECRET <= len(value) <= LONGEST_SECRET:
            bounds = f"{SHORTEST_SECRET} to {LONGEST_SECRET:,} are accepted"
            raise RequestInvalid("secrets", f"{name} has {len(value):,} characters; {bounds}")


def artifact_of(pinned: PinnedActionSet, snapshot: str) -> str:
    """The name of the first input artifact that has the id of *snapshot*; empty: none has."""
    artifacts = (each for action in pinned.actions for each in sorted(action.artifacts.items()))
    return next((name for name, texts in artifacts if snapshot in texts.values()), "")


def made_name(action: str, predecessor: str, suffix: str) -> str:
    """The name of an action set that gives none: ``ACTION-PREDECESSOR-SUFFIX``, or ``ACTION-SUFFIX``, cut to 63."""
    whole = re.sub("[^a-z0-9-]+", "-", "-".join(filter(None, (action, predecessor))).lower())
    return f"{whole[: _LONGEST_NAME - len(suffix) - 1].strip('-')}-{suffix}"


class _StoredReadings(NamedTuple):
    """
    Stored definitions as values.

    Attributes:
        blueprints: The blueprints by name, as validation takes them.
        config_maps: The config maps by name.
        problems: Why a blueprint cannot be used here.
    """

    blueprints: StoredBlueprints
    config_maps: Mapping[str, ConfigMap]
    problems: Mapping[str, Fault]


def _read_stored(stored: StoredDefinitions, table: SignatureTable) -> _StoredReadings:
    blueprints: dict[str, Blueprint | None] = dict.fromkeys(stored.blueprints)
    config_maps: dict[str, ConfigMap] = {}
    problems: dict[str, Fault] = {}
    for documents in stored:
        for name, document in documents.items():
            outcome = validate([] if document is None else [document], table)
            for definition in outcome.definitions:
                if isinstance(definition, Blueprint):
                    blueprints[name] = definition
                elif isinstance(definition, ConfigMap):
                    config_maps[name] = definition
            for faults in outcome.faults.values():
                problems[name] = faults[0]
    return _StoredReadings(blueprints, config_maps, problems)


def _violations(documents: Sequence[Any], faults: Mapping[int, Sequence[Fault]]) -> tuple[Violation, ...]:
    """The faults as violations; they have no place, as definitions in a request have no lines."""
    return tuple(
        Violation(
            _kind_of(documents[position]),
            f"root[{position}].{fault.path}",
            fault.reason,
            Location(""),
            fault.code,
            DIAGNOSTICS[fault.code].severity,
        )
        for position, of_one in sorted(faults.items())
        for fault in of_one
    )


def _kind_of(document: Any) -> str:
    kind = document.get("kind") if isinstance(document, dict) else None
    return kind if isinstance(kind, str) and kind else "unknown"


class _Run(NamedTuple):
    """
    One action of an action set that is resolved.

    Attributes:
        run: The action with its inputs.
        actions: All actions of its blueprint; the action is one of them.
        place: Where its inputs are in the request, or would be.
        naming: Where the request names the action.
    """

    run: ActionRun
    actions: Mapping[str, Action]
    place: JsonPlace
    naming: JsonPlace

    @property
    def action(self) -> Action:
        """What the action does."""
        return self.actions[self.run.name]


class _Resolver:
    """Resolves one request, and reports what is wrong with its action set."""

    def __init__(
        self,
        request: RunRequest,
        stored: _StoredReadings,
        config_map_names: Collection[str],
        table: SignatureTable,
    ) -> None:
        """*config_map_names* are those that are stored, also if they were not read."""
        self._request = request
        self._stored = stored
        self._config_map_names = sorted({*request.config_maps, *config_map_names})
        self._table = table
        self._spec = JsonPlace(request.documents[request.position], ()).member("spec")
        self._blueprints: dict[str, Mapping[str, Action]] = {}
        self.report = Report(request.position)

    def resolve(self, earlier: EarlierActionSet | None, time: str, suffix: str) -> PinnedActionSet | None:
        """The action set; None after a fault."""
        action_set = self._request.action_set
        runs = self._following_runs(earlier, action_set) if earlier else self._listed_runs(action_set)
        actions = [self._pinned_action(each) for each in runs if each]
        if self.report.faults:
            return None
        predecessor = earlier.pinned.name if earlier else ""
        pinned = PinnedActionSet(
            action_set.name or made_name(actions[0].name, predecessor, suffix),
            time,
            tuple(actions),
            action_set.sequential,
            action_set.timeout,
            action_set.wait,
            action_set.ttl,
            predecessor,
            action_set.labels,
            self._blueprints,
        )
        size = len(pinned_text(pinned).encode())
        if size > LARGEST_PINNED:
            reason = f"the action set has {size:,} bytes with all that it uses; at most {LARGEST_PINNED:,} are accepted"
            self.report.add(self._spec, Code.DEFINITION_TOO_LARGE, reason)
        return None if self.report.faults else pinned

    def _listed_runs(self, action_set: ActionSet) -> list[_Run | None]:
        """The actions that the request lists; None after a fault."""
        runs: list[_Run | None] = []
        for run, place in zip(action_set.actions, self._spec.member("actions").items(), strict=True):
            actions = self._todays_actions(run.blueprint, place.member("blueprint"))
            runs.append(_Run(run, actions, place, place.member("name")) if actions else None)
        return runs

    def _following_runs(self, earlier: EarlierActionSet, action_set: ActionSet) -> list[_Run | None]:
        """The actions that follow from those of the predecessor; None after a fault."""
        name = action_set.predecessor.action if action_set.predecessor else ""
        overrides = action_set.overrides or ActionRun()
        if overrides.object and len(earlier.pinned.actions) > 1:
            count = len(earlier.pinned.actions)
            reason = (
                f"the predecessor has {count} actions, and all would get this object; run the action without from, and"
                " pass the artifact that it is to have"
            )
            self.report.add(self._spec.member("overrides").member("object"), Code.FIELD_CONFLICT, reason)
        return [self._following_run(name, earlier, index, overrides) for index in range(len(earlier.pinned.actions))]

    def _following_run(self, name: str, earlier: EarlierActionSet, index: int, overrides: ActionRun) -> _Run | None:
        before = earlier.pinned.actions[index]
        blueprint = overrides.blueprint or before.blueprint
        place, naming = self._spec.member("overrides"), self._spec.member("from").member("action")
        blueprint_place = place.member("blueprint") if overrides.blueprint else naming
        earlier_actions = earlier.pinned.blueprints.get(blueprint) if blueprint == before.blueprint else None
        actions = self._successors_actions(blueprint, earlier_actions, blueprint_place)
        if actions is None:
            return None
        action = actions.get(name)
        if action is None:
            reason = f"blueprint {quoted(blueprint)} has no action {quoted(name)}; {hint(name, actions, 'actions')}"
            self.report.add(naming, Code.ACTION_NOT_FOUND, reason, rewrite_to_nearest(name, actions))
            return None
        artifacts = {
            artifact: texts for (of_action, artifact), texts in earlier.artifacts.items() if of_action == index
        }
        run = _merged(ActionRun(name, blueprint), action, before, artifacts, overrides)
        if run.object and action.kind not in (NO_OBJECT, run.object.kind):
            kind = place.member("object").member("kind")
            named_choice(JsonPlace(run.object.kind, kind.pointer), [action.kind], self.report)
        compare_inputs(place, inputs_of(action), run, self.report)
        return _Run(run, actions, place, naming)

    def _successors_actions(
        self, blueprint: str, earlier_actions: Mapping[str, Action] | None, place: JsonPlace
    ) -> Mapping[str, Action] | None:
        """The actions of a blueprint as it is today, or as the predecessor had it; None after a fault."""
        if self._request.is_pinned and earlier_actions is None:
            reason = "does not go with pinned, which runs the blueprint of the predecessor; remove one of them"
            self.report.add(place, Code.FIELD_CONFLICT, reason)
            return None
        is_gone = blueprint not in self._request.blueprints and blueprint not in self._stored.blueprints
        if earlier_actions is not None and (self._request.is_pinned or is_gone):
            return earlier_actions
        return self._todays_actions(blueprint, place)

    def _todays_actions(self, name: str, place: JsonPlace) -> Mapping[str, Action] | None:
        """The actions of a blueprint of the request, else of a stored one; None after a fault."""
        blueprint = self._request.blueprints.get(name) or self._stored.blueprints.get(name)
        if blueprint:
            return blueprint.actions
        fault = self._stored.problems.get(name)
        problem = f"{fault.path}: {fault.reason}" if fault else "it was deleted or is no blueprint"
        reason = f"stored blueprint {quoted(name)} cannot run here: {problem}"
        self.report.add(place, fault.code if fault else Code.BLUEPRINT_NOT_FOUND, reason)
        return None

    def _pinned_action(self, each: _Run) -> PinnedAction:
        """A run with all that it uses; it is complete only if there is no fault."""
        run, action = each.run, each.action
        self._check_functions(each)
        if run.blueprint not in self._blueprints:
            versioned = {name: with_versions(one, self._table) for name, one in each.actions.items()}
            self._blueprints[run.blueprint] = versioned
        options = {name: run.options.get(name, option.default) for name, option in action.options.items()}
        return PinnedAction(
            run.name,
            run.blueprint,
            self._blueprints[run.blueprint][run.name],
            with_whole_target(run.object) if run.object else None,
            {name: text for name, text in options.items() if text is not None},
            run.artifacts,
            {
                name: self._config_map(source, each.place.member("configMaps").member(name).member("name"))
                for name, source in run.config_maps.items()
            },
            run.secrets,
        )

    def _check_functions(self, each: _Run) -> None:
        """Report a phase whose function is not there: one of a function server, or of a version that has gone."""
        for phase in all_phases(each.action):
            if self._table.find(phase.function, phase.version) is None:
                function = phase.function[:80] + (f" v{phase.version}" if phase.version else "")
                reason = f"phase {quoted(phase.name)} of blueprint {quoted(each.run.blueprint)} calls {function}"
                functions = f"functions: {listed(self._table.names)} (pkger functions)"
                self.report.add(each.naming, Code.FUNCTION_NOT_FOUND, f"{reason}, which is not there; {functions}")

    def _config_map(self, source: ConfigMapSource, place: JsonPlace) -> Mapping[str, str]:
        """The texts of a config map; empty after a fault."""
        if source.data is not None:
            return source.data
        name, names = source.name, self._config_map_names
        config_map = self._request.config_maps.get(name) or self._stored.config_maps.get(name)
        if config_map:
            return config_map.data
        end = hint(name, names, "config maps")
        reason = f"there is no config map {quoted(name)}, neither in the request nor stored; {end}"
        self.report.add(place, Code.CONFIG_MAP_NOT_FOUND, reason, rewrite_to_nearest(name, names))
        return {}


def _merged(
    run: ActionRun,
    action: Action,
    before: PinnedAction,
    artifacts: Mapping[str, Mapping[str, str]],
    overrides: ActionRun,
) -> ActionRun:
    """
    A run with the inputs that it takes from an action of the predecessor, and the overrides: options merge, the rest
    replaces.

    Args:
        run: Names the action and its blueprint.
        action: What it declares.
        before: The action of the predecessor.
        artifacts: What that left.
        overrides: The overrides.
    """
    config_maps = {
        name: ConfigMapSource(data) for name, data in before.config_maps.items() if name in action.config_map_names
    }
    secrets = {name: sources for name, sources in before.secrets.items() if name in action.secret_names}
    options = {name: text for name, text in before.options.items() if name in action.options}
    return replace(
        run,
        object=overrides.object or before.object,
        artifacts=overrides.artifacts
        or {name: texts for name, texts in artifacts.items() if name in action.input_artifact_names},
        config_maps=overrides.config_maps or config_maps,
        secrets=overrides.secrets or secrets,
        options={**options, **overrides.options},
    )
