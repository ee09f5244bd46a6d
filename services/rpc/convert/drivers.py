"""Messages of the driver contract: traits, mutations, outcomes and prepared specs."""

from typing import Any, assert_never

from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import plan_pb2

from services.core import model
from services.core.errors import RequestInvalid
from services.engine.effects import AnyEffect, Attach, Create, Delete, DeleteSecret, Detach, PutSecret, Update
from services.engine.effects.effect import Sending
from services.engine.expectation import Expectation, describe_changes
from services.engine.outcome import Done, Failed, Outcome, Unknown
from services.kinds.format.canonical import spec_from_text
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import references_to_pb, resource_from_pb
from services.rpc.convert.operations import rejection_from_pb
from services.rpc.convert.plans import text_of

LONGEST_MESSAGE = 900
"""Most characters of a driver's message that are kept: an event with one of them in UTF-8 is smaller than 4 KiB."""

_UNDO = Numbers(model.Undo, plan_pb2.Undo, "UNDO")
_PRECONDITION = Numbers(model.Precondition, driver_pb2.Precondition, "PRECONDITION")
_IDENTITY = Numbers(model.Identity, driver_pb2.Identity, "IDENTITY")
_NAME_UNIQUENESS = Numbers(model.NameUniqueness, driver_pb2.NameUniqueness, "NAME_UNIQUENESS")


def platform_to_pb(traits: model.PlatformTraits) -> driver_pb2.DescribeResponse:
    """Translate the traits of a platform."""
    return driver_pb2.DescribeResponse(
        platform=traits.platform,
        version=traits.version,
        kinds=[_traits_to_pb(traits.kinds[kind]) for kind in sorted(traits.kinds)],
        max_batch_size=traits.max_batch_size,
        max_concurrency=traits.max_concurrency,
        fences=traits.fences,
        holds_secrets=traits.holds_secrets,
        precondition=_PRECONDITION.number(traits.precondition),
    )


def platform_from_pb(message: driver_pb2.DescribeResponse) -> model.PlatformTraits:
    """Translate the traits of a platform."""
    return model.PlatformTraits(
        platform=message.platform,
        version=message.version,
        kinds={kind.kind: _traits_from_pb(kind) for kind in message.kinds},
        max_batch_size=message.max_batch_size,
        max_concurrency=message.max_concurrency,
        fences=message.fences,
        holds_secrets=message.holds_secrets,
        precondition=_PRECONDITION.find(message.precondition) or model.Precondition.READ_FIRST,
    )


def _traits_to_pb(traits: model.KindTraits) -> driver_pb2.KindTraits:
    return driver_pb2.KindTraits(
        kind=traits.kind,
        identity=_IDENTITY.number(traits.identity),
        name_uniqueness=_NAME_UNIQUENESS.number(traits.name_uniqueness),
        stage=traits.stage,
        delete_undo=_UNDO.number(traits.delete_undo),
        immutable_paths=traits.immutable_paths,
        set_paths=traits.set_paths,
        labelled=traits.labelled,
        name_scope=traits.name_scope,
        sensitive_paths=traits.sensitive_paths,
        costly_listing=traits.costly_listing,
    )


def _traits_from_pb(message: driver_pb2.KindTraits) -> model.KindTraits:
    return model.KindTraits(
        kind=message.kind,
        identity=_IDENTITY.member(message.identity),
        name_uniqueness=_NAME_UNIQUENESS.member(message.name_uniqueness),
        stage=message.stage,
        delete_undo=_UNDO.member(message.delete_undo),
        immutable_paths=tuple(message.immutable_paths),
        set_paths=tuple(message.set_paths),
        labelled=message.labelled,
        name_scope=message.name_scope,
        sensitive_paths=tuple(message.sensitive_paths),
        costly_listing=message.costly_listing,
    )


def mutation_to_pb(effect: AnyEffect, sending: Sending, idempotency_key: str, secret: str = "") -> driver_pb2.Mutation:
    """
    The mutation that performs *effect*.

    Args:
        effect: The effect; the ids in its step are ignored, as some are known only at run time.
        sending: The ids to use.
        idempotency_key: For a creation.
        secret: The value of the secret to write.
    """
    kind, text = effect.step.key.kind, text_of(effect.step.new_spec)
    resource_id, references = sending.resource_id, references_to_pb(sending.references)
    match effect:
        case Create():
            create = driver_pb2.CreateResource(
                kind=kind, spec_json=text, idempotency_key=idempotency_key, references=references
            )
            return driver_pb2.Mutation(create=create)
        case Update():
            expect = _expectation_to_pb(sending.expected)
            update = driver_pb2.UpdateResource(
                kind=kind, id=resource_id, spec_json=text, references=references, expect=expect
            )
            return driver_pb2.Mutation(update=update)
        case Delete():
            expect = _expectation_to_pb(sending.expected)
            return driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind=kind, id=resource_id, expect=expect))
        case Attach():
            attach = driver_pb2.AttachLabel(kind=kind, id=resource_id, label_id=sending.label_id)
            return driver_pb2.Mutation(attach=attach)
        case Detach():
            detach = driver_pb2.DetachLabel(kind=kind, id=resource_id, label_id=sending.label_id)
            return driver_pb2.Mutation(detach=detach)
        case PutSecret():
            return driver_pb2.Mutation(put_secret=driver_pb2.PutSecret(key=resource_id, value=secret))
        case DeleteSecret():
            return driver_pb2.Mutation(delete_secret=driver_pb2.DeleteSecret(key=resource_id))
    assert_never(effect)


def outcome_from_pb(effect: AnyEffect, sending: Sending, result: driver_pb2.MutationResult) -> Outcome:
    """The outcome of *effect* by the result of a driver."""
    match result.WhichOneof("result"):
        case "done" if effect.makes:
            if result.done.id:
                # If an earlier attempt made the resource, it may have been edited since; its undo has to detect that
                # (docs/reference/engine.md, "Expectations").
                return Done(result.done.id, "" if result.done.replayed else _observed(result.done))
            return Unknown("the driver returned no id of the created resource")
        case "done":
            return Done(sending.resource_id, _observed(result.done))
        case "rejected":
            reason = rejection_from_pb(result.rejected.reason)
            message = _what_changed(sending, result.rejected) or result.rejected.message
            return Failed(_shortened(message), reason, _seconds(result.rejected))
        case "ambiguous":
            return Unknown(_shortened(result.ambiguous.message), retry_after=_seconds(result.ambiguous))
        case _:
            # Any other result is ambiguous (docs/reference/engine.md, "States").
            return Unknown("the driver returned no result")


def _expectation_to_pb(expected: Expectation | None) -> driver_pb2.Expectation | None:
    if expected is None:
        return None
    references = references_to_pb(expected.references)
    return driver_pb2.Expectation(spec_json=expected.spec_json, references=references, label_ids=expected.label_ids)


def _what_changed(sending: Sending, rejected: driver_pb2.Rejected) -> str:
    """
    How the current resource differs from the expected one; empty if the driver returned no readable current resource.
    """
    if sending.expected is None or not rejected.HasField("live"):
        return ""
    try:
        return describe_changes(sending.expected, resource_from_pb(rejected.live))
    except (RequestInvalid, model.UnreadableSpecError):
        return ""


def desired_spec_fields(desired: model.DesiredSpec) -> Any:
    """A wanted spec as part of another message."""
    return {
        "kind": desired.kind,
        "id": desired.resource_id,
        "spec_json": desired.spec.text,
        "references": references_to_pb(desired.references),
    }


def prepared_from_pb(desired: model.DesiredSpec, answer: driver_pb2.PreparedSpec) -> model.Spec | Failed | None:
    """
    The prepared spec of *desired*, or why the platform refuses it; None: the driver returned neither.

    Raises:
        ValueError: The prepared spec is invalid.
        TypeError: It is nested more deeply than canonical text can be written.
    """
    match answer.WhichOneof("result"):
        case "stored" if answer.stored.kind == desired.kind:
            # An empty text stands for the sent spec, which is already parsed; any other text may not be canonical.
            spec = spec_from_text(answer.stored.spec_json) if answer.stored.spec_json else desired.spec
            return model.ResettingSpec(spec, [*map(_shortened, answer.stored.resets)]) if answer.stored.resets else spec
        case "rejected" if not answer.rejected.HasField("retry_after"):
            return Failed(_shortened(answer.rejected.message), rejection_from_pb(answer.rejected.reason))
        case _:
            return None


def _observed(done: driver_pb2.Done) -> str:
    """The live spec as canonical text; empty if it is the sent one, or invalid."""
    try:
        return spec_from_text(done.observed_spec_json).text if done.observed_spec_json else ""
    except (ValueError, TypeError):
        return ""


def _shortened(message: str) -> str:
    """A message of a driver as one printable line, short enough for an event (operation.proto)."""
    line = message if message.isprintable() else "".join(c if c.isprintable() else " " for c in message)
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 1]}…"


def _seconds(message: driver_pb2.Rejected | driver_pb2.Ambiguous) -> float | None:
    """Seconds that the platform asks to wait; None if it does not."""
    return message.retry_after.ToMicroseconds() / 1e6 if message.HasField("retry_after") else None
