"""What drivers say of their platforms, and what is asked of them."""

from collections.abc import Iterable

from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import plan_pb2

from services.core import model
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import references_to_pb
from services.rpc.convert.plans import text_of

_UNDO = Numbers(model.Undo, plan_pb2.Undo, "UNDO")
_IDENTITY = Numbers(model.Identity, driver_pb2.Identity, "IDENTITY")
_NAME_UNIQUENESS = Numbers(model.NameUniqueness, driver_pb2.NameUniqueness, "NAME_UNIQUENESS")


def platform_to_pb(traits: model.PlatformTraits) -> driver_pb2.DescribeResponse:
    """Translate what a driver says of its platform."""
    return driver_pb2.DescribeResponse(
        platform=traits.platform,
        version=traits.version,
        kinds=[_traits_to_pb(traits.kinds[kind]) for kind in sorted(traits.kinds)],
        max_batch_size=traits.max_batch_size,
        max_concurrency=traits.max_concurrency,
        fences=traits.fences,
        holds_secrets=traits.holds_secrets,
    )


def platform_from_pb(message: driver_pb2.DescribeResponse) -> model.PlatformTraits:
    """Translate what a driver says of its platform."""
    return model.PlatformTraits(
        platform=message.platform,
        version=message.version,
        kinds={kind.kind: _traits_from_pb(kind) for kind in message.kinds},
        max_batch_size=message.max_batch_size,
        max_concurrency=message.max_concurrency,
        fences=message.fences,
        holds_secrets=message.holds_secrets,
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
    )


def mutation_to_pb(
    step: model.Step, remote_id: str, label_id: str, idempotency_key: str, references: Iterable[model.Reference]
) -> driver_pb2.Mutation:
    """
    The mutation that carries out *step*.

    Args:
        step: The step; its own ids are not looked at, as they may be found only at run time.
        remote_id: Id of the resource; empty for a create.
        label_id: Id of the label; empty unless the step attaches or detaches one.
        idempotency_key: For a create.
        references: What the resource is to refer to, for a create and an update.
    """
    kind, text = step.key.kind, text_of(step.new_spec)
    match step.verb:
        case model.Verb.CREATE:
            create = driver_pb2.CreateResource(
                kind=kind, spec_json=text, idempotency_key=idempotency_key, references=references_to_pb(references)
            )
            return driver_pb2.Mutation(create=create)
        case model.Verb.UPDATE:
            update = driver_pb2.UpdateResource(
                kind=kind, id=remote_id, spec_json=text, references=references_to_pb(references)
            )
            return driver_pb2.Mutation(update=update)
        case model.Verb.DELETE:
            return driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind=kind, id=remote_id))
        case model.Verb.ATTACH:
            attach = driver_pb2.AttachLabel(kind=kind, id=remote_id, label_id=label_id)
            return driver_pb2.Mutation(attach=attach)
        case model.Verb.DETACH:
            detach = driver_pb2.DetachLabel(kind=kind, id=remote_id, label_id=label_id)
            return driver_pb2.Mutation(detach=detach)
