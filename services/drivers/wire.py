"""Values of the driver contract as proto messages and back, for every driver."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from google.protobuf.duration_pb2 import Duration
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2

from services.core.errors import KindUnsupported, RequestInvalid
from services.core.model import KindTraits, PlatformTraits, Reference, ResettingSpec, Spec
from services.drivers.mutation import (
    Ambiguous,
    Attach,
    Create,
    Delete,
    DeleteSecret,
    Detach,
    Done,
    Fence,
    Mutation,
    PutSecret,
    Rejected,
    ResourceId,
    Result,
    StoredResource,
    Update,
)
from services.engine.expectation import Expectation
from services.engine.fencing_tokens import refuse_too_high
from services.engine.outcome import RejectionReason
from services.kinds.format.canonical import checked_spec
from services.rpc.convert.objects import references_from_pb, references_to_pb
from services.rpc.convert.operations import rejection_number
from services.rpc.parts import parts, text_bytes

_ITEM_BYTES = 96
"""Most bytes of a resource, a label or a reference in a message, without its longer texts."""


def kinds_from_pb(kinds: Collection[str], traits: PlatformTraits) -> list[str]:
    """
    The kinds of a request, sorted, each once.

    Raises:
        KindUnsupported: The platform lacks one of them.
    """
    for kind in kinds:
        if kind not in traits.kinds:
            raise KindUnsupported(traits.platform, kind)
    return sorted(set(kinds))


def ids_from_pb(messages: Collection[object_pb2.ResourceId], traits: PlatformTraits) -> list[ResourceId]:
    """The ids of a request, in its order; errors as for ``kinds_from_pb``."""
    kinds_from_pb([message.kind for message in messages], traits)
    return [ResourceId(message.kind, message.id) for message in messages]


def fence_from_pb(request: driver_pb2.MutateRequest) -> Fence | None:
    """
    The fence of a batch; None for writes on behalf of no stack.

    Raises:
        RequestInvalid: Its token is too high.
    """
    if not request.HasField("fence"):
        return None
    fence = request.fence
    refuse_too_high(fence.token)
    return Fence(fence.scope, fence.token, fence.operation_id, fence.transient)


def seen_to_pb(seen: Fence | None) -> driver_pb2.MutateResponse:
    """The response to a shown token: the token before it."""
    if seen is None:
        return driver_pb2.MutateResponse()
    return driver_pb2.MutateResponse(
        seen=driver_pb2.Fence(scope=seen.scope, token=seen.token, operation_id=seen.operation)
    )


def batch_from_pb(messages: Collection[driver_pb2.Mutation], traits: PlatformTraits) -> list[Mutation | Rejected]:
    """
    Translate a batch.

    Items that are invalid in every state of the platform are rejected here: an unknown kind, a spec that is unreadable
    or holds a credential, a label on a kind that cannot have labels.

    Raises:
        RequestInvalid: The batch is larger than the platform allows, or an item names no change.
    """
    if len(messages) > traits.max_batch_size:
        raise RequestInvalid("mutations", f"{len(messages)} are more than a batch may have, {traits.max_batch_size}")
    for position, message in enumerate(messages):
        if message.WhichOneof("change") is None:
            raise RequestInvalid(f"mutations[{position}]", "names no change")
    return [_mutation_from_pb(message, traits) for message in messages]


def _mutation_from_pb(message: driver_pb2.Mutation, traits: PlatformTraits) -> Mutation | Rejected:
    change = getattr(message, message.WhichOneof("change") or "")
    if isinstance(change, driver_pb2.PutSecret | driver_pb2.DeleteSecret):
        return _secret_from_pb(change, traits)
    if refused := _refused_kind(change.kind, traits):
        return refused
    match change:
        case driver_pb2.CreateResource() | driver_pb2.UpdateResource():
            return _write_from_pb(change, traits.kinds[change.kind])
        case driver_pb2.DeleteResource():
            return Delete(ResourceId(change.kind, change.id), _expectation_from_pb(change))
        case driver_pb2.AttachLabel() if not traits.kinds[change.kind].labelled:
            return Rejected(RejectionReason.CONTENT_REFUSED, f"labels cannot be attached to a {change.kind}")
        case driver_pb2.AttachLabel():
            return Attach(ResourceId(change.kind, change.id), change.label_id)
        case _:
            return Detach(ResourceId(change.kind, change.id), change.label_id)


def desired_from_pb(
    messages: Iterable[driver_pb2.DesiredSpec], traits: PlatformTraits
) -> list[Create | Update | Rejected]:
    """Translate desired specs to the writes that they are for; rejects the same items as ``batch_from_pb``."""
    return [_desired_from_pb(message, traits) for message in messages]


def _desired_from_pb(message: driver_pb2.DesiredSpec, traits: PlatformTraits) -> Create | Update | Rejected:
    if refused := _refused_kind(message.kind, traits):
        return refused
    content = _content_from_pb(message, traits.kinds[message.kind])
    if isinstance(content, Rejected):
        return content
    spec, references = content
    if message.id:
        return Update(ResourceId(message.kind, message.id), spec, references)
    return Create(message.kind, spec, references=references)


def _refused_kind(kind: str, traits: PlatformTraits) -> Rejected | None:
    if kind in traits.kinds:
        return None
    problem = f"platform {traits.platform!r} has no kind {kind!r}; it has {', '.join(sorted(traits.kinds))}"
    return Rejected(RejectionReason.KIND_UNSUPPORTED, problem)


def _secret_from_pb(
    change: driver_pb2.PutSecret | driver_pb2.DeleteSecret, traits: PlatformTraits
) -> PutSecret | DeleteSecret | Rejected:
    if not traits.holds_secrets:
        return Rejected(RejectionReason.KIND_UNSUPPORTED, f"platform {traits.platform!r} holds no secrets")
    if isinstance(change, driver_pb2.DeleteSecret):
        return DeleteSecret(change.key)
    if not change.key:
        return Rejected(RejectionReason.CONTENT_REFUSED, "a secret needs a key that is not empty")
    return PutSecret(change.key, change.value)


def _write_from_pb(
    change: driver_pb2.CreateResource | driver_pb2.UpdateResource, traits: KindTraits
) -> Create | Update | Rejected:
    content = _content_from_pb(change, traits)
    if isinstance(content, Rejected):
        return content
    spec, references = content
    if isinstance(change, driver_pb2.CreateResource):
        return Create(change.kind, spec, change.idempotency_key, references)
    return Update(ResourceId(change.kind, change.id), spec, references, _expectation_from_pb(change))


def _content_from_pb(
    change: driver_pb2.CreateResource | driver_pb2.UpdateResource | driver_pb2.DesiredSpec, traits: KindTraits
) -> tuple[Spec, tuple[Reference, ...]] | Rejected:
    """The spec and the references that a resource is to have."""
    try:
        spec = checked_spec(change.spec_json)
    # TypeError: nested deeper than canonical text can be written.
    except (ValueError, TypeError) as error:
        return Rejected(RejectionReason.CONTENT_REFUSED, f"the spec of a {change.kind} cannot be read: {error}")
    for path in traits.written_secrets(spec):
        problem = f"{path} of a {change.kind} names a secret, it does not hold one; write {{secretRef: {{key: KEY}}}}"
        return Rejected(RejectionReason.CONTENT_REFUSED, problem)
    if not change.references:
        return spec, ()
    references = tuple(sorted(references_from_pb(change.references), key=lambda reference: reference.pointer))
    if len({reference.pointer for reference in references}) < len(references):
        return Rejected(RejectionReason.CONTENT_REFUSED, f"a {change.kind} cannot refer to two resources at one place")
    return spec, references


def _expectation_from_pb(change: driver_pb2.UpdateResource | driver_pb2.DeleteResource) -> Expectation | None:
    if not change.HasField("expect"):
        return None
    expect = change.expect
    return Expectation(expect.spec_json, tuple(references_from_pb(expect.references)), tuple(expect.label_ids))


def resource_fields(resource: StoredResource) -> Any:
    """A resource as part of another message."""
    return {
        "kind": resource.id.kind,
        "id": resource.id.id,
        "spec_json": resource.spec_json,
        "display_name": resource.display_name,
        "label_ids": resource.label_ids,
        "references": references_to_pb(resource.references),
        "unexpressed": resource.unexpressed,
    }


def chunks_to_pb(resources: Iterable[StoredResource]) -> Iterator[driver_pb2.ListResourcesResponse]:
    """Cut a list into chunks of at most 1 MiB, unless a single resource is larger; no resources make no chunk."""
    for chunk in parts(resources, _resource_bytes):
        yield driver_pb2.ListResourcesResponse(resources=map(resource_fields, chunk))


def read_result_to_pb(resource: StoredResource | None) -> driver_pb2.ReadResult:
    """Translate the answer for one id; None: there is certainly no such resource."""
    if resource is None:
        return driver_pb2.ReadResult(gone=driver_pb2.Gone())
    return driver_pb2.ReadResult(resource=resource_fields(resource))


def prepared_to_pb(
    specs: Iterable[driver_pb2.DesiredSpec], prepared: Sequence[Spec | Rejected]
) -> driver_pb2.PrepareSpecsResponse:
    """Translate the prepared spec, or the refusal, of each of the *specs* of a request."""
    fields: Any = [
        {**_prepared_fields(sent, answer), "position": position}
        for position, (sent, answer) in enumerate(zip(specs, prepared, strict=True))
    ]
    return driver_pb2.PrepareSpecsResponse(specs=fields)


def _prepared_fields(sent: driver_pb2.DesiredSpec, answer: Spec | Rejected) -> Any:
    if isinstance(answer, Rejected):
        return {"rejected": _rejected_fields(answer)}
    resets = answer.resets if isinstance(answer, ResettingSpec) else ()
    spec_json = answer.text if answer.text != sent.spec_json else ""
    return {"stored": {"kind": sent.kind, "spec_json": spec_json, "resets": resets}}


def results_to_pb(mutations: Iterable[driver_pb2.Mutation], results: Sequence[Result]) -> driver_pb2.MutateResponse:
    """Translate the results of the *mutations* of a request, one for each."""
    fields: Any = [
        {**_result_fields(mutation, result), "position": position}
        for position, (mutation, result) in enumerate(zip(mutations, results, strict=True))
    ]
    return driver_pb2.MutateResponse(results=fields)


def _result_fields(mutation: driver_pb2.Mutation, result: Result) -> Any:
    match result:
        case Done(resource, is_replayed):
            return {"done": _done_fields(mutation, resource, is_replayed)}
        case Rejected():
            return {"rejected": _rejected_fields(result)}
        case Ambiguous(message, retry_after):
            return {"ambiguous": {"message": message, "retry_after": _duration(retry_after)}}


def _rejected_fields(rejected: Rejected) -> Any:
    return {
        "reason": rejection_number(rejected.reason),
        "message": rejected.message,
        "retry_after": _duration(rejected.retry_after),
        "live": resource_fields(rejected.live) if rejected.live else None,
    }


def _done_fields(mutation: driver_pb2.Mutation, resource: StoredResource | None, is_replayed: bool) -> Any:
    """The id of a created resource, and its spec if the platform holds another text than was sent."""
    if resource is None:
        return {}
    creates = mutation.WhichOneof("change") == "create"
    sent = mutation.create.spec_json if creates else mutation.update.spec_json
    return {
        "id": resource.id.id if creates else "",
        "observed_spec_json": resource.spec_json if resource.spec_json != sent else "",
        "replayed": is_replayed,
    }


def _resource_bytes(resource: StoredResource) -> int:
    """Estimate the size of a resource in a message."""
    labels = sum(_ITEM_BYTES + len(label_id) for label_id in resource.label_ids)
    references = sum(_ITEM_BYTES + text_bytes(each.pointer + each.kind + each.id) for each in resource.references)
    texts = sum(text_bytes(text) for text in (resource.spec_json, resource.display_name, *resource.unexpressed))
    return _ITEM_BYTES + texts + labels + references


def _duration(seconds: float | None) -> Duration | None:
    if seconds is None:
        return None
    duration = Duration()
    duration.FromMicroseconds(round(seconds * 1e6))
    return duration
