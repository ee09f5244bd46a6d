"""Hypothesis strategies for the nouns of pkger, in one place."""

from typing import Any

from hypothesis import strategies as st

from services.core import model
from services.kinds.format.canonical import canonical_text, spec_of
from services.kinds.policy import OwnPolicy
from services.packages.lifecycle import read_lifecycle

words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
"""Names as users may write them, never empty."""

resource_ids = st.text("0123456789abcdef", min_size=16, max_size=16)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)

targets = st.builds(model.Target, words, words)

keys = st.builds(model.Key, st.sampled_from(["Bucket", "Dashboard", "Label", "Task"]), words)

label_keys = st.builds(model.Key, st.just(model.LABEL), words)

label_lists = st.lists(label_keys, unique=True, max_size=3).map(lambda labels: tuple(sorted(labels)))


def _spec(name: str, rest: dict[str, Any]) -> model.Spec:
    return spec_of({**rest, "name": name})


specs = st.builds(_spec, words, st.dictionaries(words, json_values, max_size=3))

env_references = st.builds(model.EnvReference, words, words, json_values, json_values, st.sampled_from(["", "time"]))

locations = st.builds(model.Location, words, st.integers(0, 10_000), st.integers(0, 500))

written_values = st.builds(model.WrittenValue, words, json_values.map(canonical_text))

_pointers = st.lists(st.sampled_from(["/description", "/a/*/b", "/associations/red"]), max_size=3)

policies = st.fixed_dictionaries(
    {},
    optional={
        "drift": st.sampled_from(["ignore", "report", "revert"]),
        "recreate_deleted": st.booleans(),
        "on_remove": st.sampled_from(["delete", "orphan"]),
        "on_delete": st.sampled_from(["cleanup", "orphan"]),
        "adopted_on_delete": st.sampled_from(["delete", "orphan"]),
        "adopt": st.sampled_from(["never", "if_unmanaged"]),
        "protect": st.booleans(),
        "ignore": _pointers,
    },
)
"""Policies of objects, as packages and objects say them."""

policy_texts = policies.map(lambda policy: canonical_text(policy) if policy else "")

lifecycles: st.SearchStrategy[dict[str, str]] = st.just({}) | policies.map(
    lambda policy: {"": read_lifecycle("pkger/v1", {"name": "example"}, {"policy": policy}).text}
)
"""At most one Lifecycle document, of a package that is not installed."""

own_policies = st.builds(OwnPolicy, policies, policies)

objects = st.builds(
    model.Object,
    keys,
    words,
    specs,
    label_lists,
    st.lists(env_references, max_size=2).map(tuple),
    st.lists(written_values, max_size=2).map(tuple),
    st.none() | locations,
    policy_texts,
)

packages = st.builds(
    model.Package,
    st.lists(objects, unique_by=lambda item: item.key, max_size=4).map(tuple),
    st.lists(words, max_size=3).map(tuple),
    lifecycles,
)

positions = st.builds(model.Position, st.integers(0, 10_000), st.integers(0, 500))

_edits = st.builds(model.Edit, locations, positions, words)

violations = st.builds(
    model.Violation,
    words,
    words,
    words,
    locations,
    words,
    st.sampled_from(model.Severity),
    positions,
    st.lists(st.builds(model.Related, locations, words), max_size=2).map(tuple),
    st.lists(st.builds(model.Fix, words, st.lists(_edits, max_size=2).map(tuple), st.booleans()), max_size=2).map(
        tuple
    ),
)
credentials = st.builds(model.Credential, keys, words, locations)

references = st.builds(model.Reference, words, words, resource_ids)

resources = st.builds(
    model.Resource,
    words,
    resource_ids,
    specs,
    st.lists(resource_ids, max_size=3).map(tuple),
    st.lists(references, max_size=2).map(tuple),
)

origins = st.sampled_from(model.Origin)

entries = st.builds(
    model.InventoryEntry,
    keys,
    resource_ids,
    origins,
    label_lists,
    st.booleans(),
    policy_texts,
    own_policies.map(lambda own: own.text),
)

inventories = st.lists(
    entries, unique_by=(lambda entry: entry.key, lambda entry: (entry.key.kind, entry.resource_id)), max_size=12
).map(tuple)
"""Inventories of one stack: unique keys and resources."""

_step_references = st.lists(st.builds(model.StepReference, words, keys, st.just("") | resource_ids), max_size=2).map(
    tuple
)

_any_step = {
    "number": st.integers(0, 10_000),
    "stage": st.integers(0, 20),
    "undo": st.sampled_from(model.Undo),
    "reason": words,
}

_found_ids = st.just("") | resource_ids
"""Ids of existing resources; empty for a resource that an earlier step creates."""


def _step(**fields: Any) -> model.Step:
    # Hypothesis would generate omitted fields of a named tuple.
    return model.Step(**fields)


def _secret_step(key: str, overwrites: bool, **fields: Any) -> model.Step:
    verb = model.Verb.UPDATE if overwrites else model.Verb.CREATE
    return model.Step(verb=verb, key=model.Key(model.SECRET, key), resource_id=key if overwrites else "", **fields)


STEPS = {
    "create": st.builds(
        _step, verb=st.just(model.Verb.CREATE), key=keys, new_spec=specs, references=_step_references, **_any_step
    ),
    "update": st.builds(
        _step,
        verb=st.just(model.Verb.UPDATE),
        key=keys,
        resource_id=_found_ids,
        old_spec=specs,
        new_spec=specs,
        old_references=_step_references,
        references=_step_references,
        **_any_step,
    ),
    "delete": st.builds(
        _step,
        verb=st.just(model.Verb.DELETE),
        key=keys,
        resource_id=resource_ids,
        old_spec=specs,
        old_references=_step_references,
        **_any_step,
    ),
    **{
        verb.value: st.builds(
            _step,
            verb=st.just(verb),
            key=keys,
            resource_id=_found_ids,
            label=label_keys,
            label_id=_found_ids,
            **_any_step,
        )
        for verb in (model.Verb.ATTACH, model.Verb.DETACH)
    },
    "put_secret": st.builds(_secret_step, words, st.booleans(), **_any_step),
}
"""Steps of plans, by the field of the message that holds their effect."""

steps = st.one_of(*STEPS.values())

resource_steps = st.one_of(*(found for change, found in STEPS.items() if change != "put_secret"))
"""Steps without writes of secrets, which are undone by other rules."""

field_changes = st.builds(model.FieldChange, words, json_values.map(canonical_text), json_values.map(canonical_text))

diff_statuses = st.sampled_from(model.DiffStatus)

resource_diffs = st.builds(
    model.ResourceDiff,
    keys,
    resource_ids,
    diff_statuses,
    st.none() | specs,
    st.none() | specs,
    st.lists(field_changes, max_size=2).map(tuple),
    st.sampled_from(["", "Bucket"]),
    st.none() | locations,
    create_step=st.none() | st.integers(0, 10_000),
)

label_mapping_diffs = st.builds(model.LabelMappingDiff, diff_statuses, keys, resource_ids, label_keys, resource_ids)

_word_lists = st.lists(words, max_size=2).map(tuple)

_sorted_keys = st.lists(keys, unique=True, max_size=3).map(lambda found: tuple(sorted(found)))

record_changes = st.builds(model.RecordChanges, inventories, _sorted_keys, taken_over=_sorted_keys)

conflicts = st.builds(model.Conflict, keys, resource_ids, words)

remarks = st.builds(
    model.PlanRemarks,
    _word_lists,
    _word_lists,
    _word_lists,
    _word_lists,
    st.lists(conflicts, max_size=2).map(tuple),
)

plans = st.builds(
    model.Plan,
    target=targets,
    stack_id=st.just("") | resource_ids,
    base_generation=st.integers(0, 2**40),
    stages=_word_lists,
    steps=st.lists(steps, max_size=3).map(tuple),
    record=record_changes,
    no_change=st.booleans(),
    kind=st.sampled_from(model.OperationKind),
    remarks=remarks,
    sources=_word_lists,
    digest=words,
    stack_name=st.just("") | words,
)

kind_traits = st.builds(
    model.KindTraits,
    words,
    st.sampled_from(model.Identity),
    st.sampled_from(model.NameUniqueness),
    st.integers(0, 20),
    st.sampled_from(model.Undo),
    _word_lists,
    _word_lists,
    st.booleans(),
    st.just("") | words,
    _word_lists,
    st.booleans(),
)

platform_traits = st.builds(
    model.PlatformTraits,
    words,
    words,
    st.lists(kind_traits, unique_by=lambda traits: traits.kind, max_size=3).map(
        lambda kinds: {traits.kind: traits for traits in kinds}
    ),
    st.integers(1, 1000),
    st.integers(1, 64),
    st.booleans(),
    st.booleans(),
)
