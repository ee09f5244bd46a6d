"""Warnings of a plan: effects that a user may not expect."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Matching, ProtectedReplacement
from services.core.model import (
    DataLoss,
    Key,
    Origin,
    PlatformTraits,
    ResettingSpec,
    StackRecord,
    Step,
    Undo,
    Verb,
)
from services.core.text_lists import deletes_text, listed
from services.engine.counts import counts_of
from services.engine.effects import effect_of
from services.kinds.comparing import loss_of
from services.kinds.policy import max_deletes, protecting_override, resolved

_SHOWN_FIELDS = 5
_SHOWN_OBJECTS = 5

_LAX = {"drift": "ignore", "on_remove": "delete", "on_delete": "cleanup", "adopt": "if_unmanaged"}
"""The values of fields that are less careful than the others."""


def warnings_of(
    desired: Desired,
    matching: Matching,
    steps: Sequence[Step],
    stack: StackRecord,
    platform: PlatformTraits,
    protected_data: Mapping[Key, DataLoss],
) -> list[str]:
    """All warnings of the plan with *steps*; *protected_data*: the data that protected objects would lose."""
    return [
        *_emptiness(desired),
        *_releases(matching, desired),
        *_protections(matching, desired),
        *_lost_protections(matching, stack),
        *_own_policies(matching, stack),
        *(_keeping(key, loss) for key, loss in protected_data.items()),
        *_lost_before(desired, steps, platform),
        *_side_effects(steps, matching),
        *_excess(steps, stack),
        *_resets(steps, matching),
    ]


def _emptiness(desired: Desired) -> list[str]:
    """A warning about a package without objects."""
    return [] if desired.is_end or desired.packages or desired.package.objects else ["the package has no objects"]


def _side_effects(steps: Sequence[Step], matching: Matching) -> list[str]:
    """
    Warnings about skipped and protected resources that the plan changes all the same; one for each change.

    The plan deletes a label that they carry, or a resource that they refer to.
    """
    texts: dict[tuple[Key, Key | None], str] = {}
    for step in steps:
        if step.key not in matching.untouched or (step.label and step.label in matching.untouched):
            continue
        how = "protected" if step.key in matching.protected_entries else "skipped"
        texts[step.key, step.label] = (
            f"{step.key} is {how}, and loses the label {step.label.name or step.label_id}, which is deleted"
            if step.label
            else f"{step.key} is {how}, and is changed all the same: {step.reason}"
        )
    return list(texts.values())


def _resets(steps: Sequence[Step], matching: Matching) -> list[str]:
    """Warnings about updates that change what packages cannot express."""
    specs = {key: match.desired.spec for key, match in matching.matches.items() if match.desired}
    updated = [step.key for step in steps if step.verb is Verb.UPDATE]
    return [
        f"the update of {key} also changes what packages cannot express: {reset}"
        for key in updated
        if isinstance(spec := specs.get(key), ResettingSpec)
        for reset in spec.resets
    ]


def _protections(matching: Matching, desired: Desired) -> list[str]:
    """Warnings about resources that the plan leaves as they are because they are protected."""
    rest = ", and so does the stack" if desired.is_end else ""
    return [
        *(f"protected: {key} stays{rest}" for key in matching.protected),
        *(_protected_text(each) for each in matching.protected_replacements),
    ]


def _lost_protections(matching: Matching, stack: StackRecord) -> list[str]:
    """Warnings about resources that get another key, under which no rule protects them any more."""
    texts = []
    for key, match in sorted(matching.matches.items()):
        recorded = match.recorded
        if match.desired is None or recorded is None or recorded.key == key or matching.policy(stack, key).protect:
            continue
        if override := protecting_override(stack.policy, recorded.key):
            texts.append(
                f"{recorded.key} becomes {key}, and resource {recorded.resource_id} is protected no more: {override} of"
                " the policy does not match the new key; extend its match"
            )
    return texts


def _own_policies(matching: Matching, stack: StackRecord) -> list[str]:
    """Warnings about policies of packages and objects: without a stack, or less careful than that of their stack."""
    if not matching.own_policies:
        return []
    if not stack.is_kept:
        count = len(matching.own_policies)
        objects = "1 object" if count == 1 else f"{count:,} objects"
        return [f"the package has policies for {objects}, which have no effect without a stack"]
    laxer: dict[tuple[str, str, str], list[Key]] = {}
    for key in sorted(matching.own_policies.keys() & matching.matches.keys()):
        policy, of_stack = asdict(matching.policy(stack, key)), asdict(resolved(stack.policy, key))
        for field, value in _LAX.items():
            if policy[field] == value != of_stack[field]:
                laxer.setdefault((field, value, of_stack[field]), []).append(key)
    return [
        f"the package says {field}: {value}, laxer than {of_stack} of the stack, for "
        + listed(list(map(str, keys)), _SHOWN_OBJECTS, noun="objects")
        for (field, value, of_stack), keys in laxer.items()
    ]


def _keeping(key: Key, loss: DataLoss) -> str:
    return f"protected: {key} keeps its {loss.path.lstrip('/')}, as the change would lose {loss.data}"


def _lost_before(desired: Desired, steps: Sequence[Step], platform: PlatformTraits) -> list[str]:
    """Warnings of a rollback or a restore about data that was lost since, and that it does not bring back."""
    if not desired.is_stored:
        return []
    what, texts = "rollback" if desired.rollback_of else "restore", list[str]()
    for step in steps:
        if step.verb is Verb.CREATE and step.new_spec and platform.kinds[step.key.kind].delete_undo is Undo.NONE:
            texts.append(f"{step.key} is created without data: a {what} does not bring back the data of a resource")
        elif step.old_spec and step.new_spec and (loss := loss_of(step.key.kind, step.new_spec, step.old_spec)):
            texts.append(
                f"{step.key} gets its earlier {loss.path.lstrip('/')}: a {what} does not bring back {loss.data}"
            )
    return texts


def _excess(steps: Sequence[Step], stack: StackRecord) -> list[str]:
    """A warning about a plan that its policy does not allow to run; the plan can be shown nevertheless."""
    limit = max_deletes(stack.policy)
    if limit is None:
        return []
    counts = counts_of(map(effect_of, steps))
    if counts.deletes + counts.losses <= limit:
        return []
    text = deletes_text(counts.deletes, counts.losses)
    return [f"an apply of this plan is refused: it {text}, and the policy allows at most {limit:,} (max_deletes)"]


def _protected_text(protected: ProtectedReplacement) -> str:
    dropped = f", nor does {listed(protected.fields, _SHOWN_FIELDS, noun='fields')}" if protected.fields else ""
    was = "" if protected.recorded == protected.key else f", recorded as {protected.recorded},"
    return (
        f"protected: {protected.key}{was} stays as it is: {protected.reason} can change only by replacing the resource,"
        f" so it does not change{dropped}"
    )


def _releases(matching: Matching, desired: Desired) -> list[str]:
    """Warnings about resources that leave the stack and stay: it adopted them, or its policy orphans them."""
    return [
        (
            f"{key} was there before the stack, which adopted it: resource {entry.resource_id} stays"
            if desired.is_end and entry.origin is Origin.ADOPTED
            else f"{key} leaves the stack, and resource {entry.resource_id} stays, as the policy says"
        )
        + "".join(f", with label {label.name}" for label in entry.associations if label in matching.released)
        for key, entry in matching.released.items()
    ]
