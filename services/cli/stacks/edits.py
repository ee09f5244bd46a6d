"""Changes of the record of a stack without an apply: policy, forget, rename."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console
from services.cli.output.documents import print_document, print_records
from services.cli.output.escapes import one_line
from services.cli.packages import values
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session, session
from services.cli.stacks.records import policy_message
from services.rpc.convert.policies import policy_from_pb
from services.rpc.message_json import document_of

READING = ("stack",)


async def policy(
    name: str, target: object_pb2.Target, file: str, changes: Sequence[str], environ: Mapping[str, str], output: str
) -> None:
    """
    Print the policy of a stack, after replacing it by a file or making *changes*.

    Args:
        name: The stack, by name or id.
        target: Where a name is looked up.
        file: A YAML or JSON file with the whole policy; empty: the policy stays.
        changes: ``FIELD=VALUE``, with the value as YAML, to set a field; ``FIELD=`` to reset it to its default.
        environ: The environment.
        output: How to print.

    Raises:
        CommandFailed: A file cannot be read, or the policy is not valid.
    """
    # An empty file is refused: a policy with all defaults is written as {}.
    new_policy = values.mapping("--file", file) if file else None
    with Interrupts() as interrupts, plain_errors():
        async with session(READING, environ) as services:
            stack = await interrupts.or_stop(_policy(services, target, name, new_policy, changes))
    if output != "text":
        print_document(document_of(stack.policy), output)
    else:
        shown = policy_from_pb(stack.policy)
        text = yaml.safe_dump(shown, sort_keys=True, allow_unicode=True) if shown else "# all defaults\n"
        console().print(Text(text.rstrip()))


async def forget(
    name: str, target: object_pb2.Target, keys: Sequence[tuple[str, str]], environ: Mapping[str, str], output: str
) -> None:
    """
    Forget the resources of objects, given by kind and name; as data, print a response for each.

    Raises:
        CommandFailed: The stack has no such object; objects before it are forgotten.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(READING, environ) as services:
            ref = await interrupts.or_stop(ref_of(services.stack, target, name))
            stub = StackServiceStub(services.stack.channel)
            for kind, object_name in keys:
                key = object_pb2.ObjectKey(kind=kind, name=object_name)
                request = stack_pb2.ForgetResourceRequest(stack=ref, key=key)
                answer = await interrupts.or_stop(services.stack.call(stub.ForgetResource, request))
                if output != "text":
                    print_records([document_of(answer)], output)
                else:
                    console().print(
                        Text(one_line(f"{kind} {object_name} is forgotten; its resource stays on the platform"))
                    )


async def rename(
    name: str, target: object_pb2.Target, key: tuple[str, str], new_name: str, environ: Mapping[str, str], output: str
) -> None:
    """
    Change ``metadata.name`` of an object in the record of a stack.

    Raises:
        CommandFailed: The stack has no such object, or another object has the name.
    """
    kind, object_name = key
    with Interrupts() as interrupts, plain_errors():
        async with session(READING, environ) as services:
            ref = await interrupts.or_stop(ref_of(services.stack, target, name))
            request = stack_pb2.RenameResourceRequest(
                stack=ref,
                key=object_pb2.ObjectKey(kind=kind, name=object_name),
                new_name=new_name,
            )
            stub = StackServiceStub(services.stack.channel)
            answer = await interrupts.or_stop(services.stack.call(stub.RenameResource, request))
    if output != "text":
        print_document(document_of(answer), output)
        return
    console().print(Text(one_line(f"{kind} {object_name} is now {new_name}; use that name in the package")))


async def _policy(
    services: Session,
    target: object_pb2.Target,
    name: str,
    new_policy: Mapping[str, Any] | None,
    changes: Sequence[str],
) -> stack_pb2.Stack:
    stub = StackServiceStub(services.stack.channel)
    ref = await ref_of(services.stack, target, name)
    stack = (await services.stack.call(stub.GetStack, stack_pb2.GetStackRequest(stack=ref))).stack
    if new_policy is None and not changes:
        return stack
    changed = policy_from_pb(stack.policy) if new_policy is None else dict(new_policy)
    for change in changes:
        field, _, text = change.partition("=")
        changed.pop(field, None)
        if text:
            changed[field] = values.yaml_value(f"--set {change}", text)
    request = stack_pb2.UpdateStackRequest(stack=ref, policy=policy_message(changed), etag=stack.etag)
    return (await services.stack.call(stub.UpdateStack, request)).stack
