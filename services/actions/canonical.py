"""The canonical text of a definition: equal for equal meaning, so that it can be stored and compared by its digest."""

from collections.abc import Mapping
from typing import Any

from services.actions.definitions import (
    API_VERSION,
    DEFAULT_BACKOFF,
    DEFAULT_MAX_BACKOFF,
    DEFAULT_WAIT,
    STACK,
    Action,
    ActionObject,
    ActionRun,
    ActionSet,
    Blueprint,
    ConfigMap,
    ConfigMapSource,
    Definition,
    DefinitionKind,
    Option,
    Phase,
    Retry,
    SecretSource,
)
from services.actions.durations import Milliseconds, duration_text
from services.kinds.format.canonical import canonical_text


def definition_text(definition: Definition) -> str:
    """
    The canonical JSON text of a definition: a document that reads as the same definition.

    Default values are left out, durations are in their largest units, and lists of names are sorted.
    """
    return canonical_text(definition_document(definition))


def action_text(action: Action) -> str:
    """The canonical JSON text of one action of a blueprint, in the form of ``definition_text``."""
    return canonical_text(_action(action))


def kind_of(definition: Definition) -> DefinitionKind:
    """The kind of a definition."""
    match definition:
        case Blueprint():
            return DefinitionKind.BLUEPRINT
        case ConfigMap():
            return DefinitionKind.CONFIG_MAP
        case ActionSet():
            return DefinitionKind.ACTION_SET


def definition_document(definition: Definition) -> dict[str, Any]:
    """The document of ``definition_text``, as JSON values."""
    match definition:
        case Blueprint():
            actions = {name: _action(action) for name, action in definition.actions.items()}
            spec = {**_some(description=definition.description), "actions": actions}
        case ConfigMap():
            spec = {"data": dict(definition.data)}
        case ActionSet():
            spec = _action_set(definition)
    metadata = _some(name=definition.name, labels=dict(definition.labels))
    return {"apiVersion": API_VERSION, "kind": kind_of(definition).value, "metadata": metadata, "spec": spec}


def _some(**fields: Any) -> dict[str, Any]:
    """The fields that are neither None nor false nor empty."""
    return {key: value for key, value in fields.items() if value not in (None, False, "") and value not in ({}, [])}


def _unless(value: Milliseconds | None, default: Milliseconds | None = None) -> str | None:
    """The text of a duration; None if it is the default."""
    return None if value is None or value == default else duration_text(value)


def _action(action: Action) -> dict[str, Any]:
    fields = _some(
        description=action.description,
        kind="" if action.kind == STACK else action.kind,
        options={name: _option(option) for name, option in action.options.items()},
        configMapNames=sorted(action.config_map_names),
        secretNames=sorted(action.secret_names),
        inputArtifactNames=sorted(action.input_artifact_names),
        outputArtifacts=_artifacts(action.output_artifacts),
        deferPhase=None if action.defer_phase is None else _phase(action.defer_phase),
        timeout=_unless(action.timeout),
    )
    fields |= {} if action.lock is None else {"lock": action.lock}
    return {**fields, "phases": [_phase(phase) for phase in action.phases]}


def _option(option: Option) -> dict[str, Any]:
    fields = _some(description=option.description, required=option.required, enum=list(option.choices))
    return fields if option.default is None else {**fields, "default": option.default}


def _phase(phase: Phase) -> dict[str, Any]:
    fields = _some(
        name=phase.name,
        func=phase.function,
        version="" if phase.version is None else f"v{phase.version}",
        timeout=_unless(phase.timeout),
        retry=None if phase.retry is None else _retry(phase.retry),
        idempotent=phase.idempotent,
        args={name: value for name, value in phase.arguments.items() if value is not None},
    )
    return {**fields, **({"if": phase.condition} if phase.condition else {})}


def _retry(retry: Retry) -> dict[str, Any]:
    backoff, max_backoff = _unless(retry.backoff, DEFAULT_BACKOFF), _unless(retry.max_backoff, DEFAULT_MAX_BACKOFF)
    return {"attempts": retry.attempts, **_some(backoff=backoff, maxBackoff=max_backoff)}


def _artifacts(artifacts: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    return {name: {"keyValue": dict(texts)} for name, texts in artifacts.items()}


def _action_set(action_set: ActionSet) -> dict[str, Any]:
    predecessor, overrides = action_set.predecessor, action_set.overrides
    fields = _some(
        actions=[_run(run) for run in action_set.actions],
        overrides=None if overrides is None else _run(overrides),
        sequential=action_set.sequential,
        timeout=_unless(action_set.timeout),
        wait=_unless(action_set.wait, DEFAULT_WAIT),
        ttl=_unless(action_set.ttl),
    )
    if predecessor:
        fields["from"] = {"actionSet": predecessor.action_set, "action": predecessor.action}
    return fields


def _run(run: ActionRun) -> dict[str, Any]:
    return _some(
        name=run.name,
        blueprint=run.blueprint,
        object=None if run.object is None else _object(run.object),
        artifacts=_artifacts(run.artifacts),
        configMaps={name: _config_map(source) for name, source in run.config_maps.items()},
        secrets={
            name: {key: _secret(source) for key, source in sources.items()} for name, sources in run.secrets.items()
        },
        options=dict(run.options),
    )


def _object(target: ActionObject) -> dict[str, Any]:
    return _some(
        kind=target.kind,
        name=target.name,
        stack=target.stack,
        target=_some(platform=target.platform, org=target.org),
    )


def _config_map(source: ConfigMapSource) -> dict[str, Any]:
    return {"name": source.name} if source.data is None else {"data": dict(source.data)}


def _secret(source: SecretSource) -> dict[str, Any]:
    return {source.place.value: source.name or True}
