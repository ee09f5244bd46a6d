"""``pkger stacks policy --explain``: which layer says each value of the policy of one object."""

from collections.abc import Mapping
from typing import Any

from pkger.model.v1 import object_pb2

from services.cli.errors import CommandFailed, plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import session
from services.cli.stacks.edits import READING
from services.core.model import Key
from services.kinds.policy import ExplainedField, explained, read, read_own
from services.rpc.convert.objects import key_to_pb
from services.rpc.convert.policies import policy_from_pb
from services.rpc.stack_records import read_stack


async def explain_policy(
    name: str, target: object_pb2.Target, key: tuple[str, str], environ: Mapping[str, str], output: str
) -> None:
    """
    Print each field of the policy of one object, its value, and the layers that say it.

    Args:
        name: The stack, by name or id.
        target: Where a name is looked up.
        key: Kind and name of the object.
        environ: The environment.
        output: How to print.

    Raises:
        CommandFailed: There is no such stack, or it has no such object.
    """
    object_key = Key(*key)
    with Interrupts() as interrupts, plain_errors():
        async with session(READING, environ) as services:
            ref = await interrupts.or_stop(ref_of(services.stack, target, name))
            header, entries = await interrupts.or_stop(read_stack(services.stack, ref))
    entry = next((each for each in entries if each.key == key_to_pb(object_key)), None)
    if entry is None:
        raise CommandFailed(f"stack {name!r} has no {object_key}; `pkger stacks show {name}` lists what it has")
    recorded, own = read(entry.policy_json), read_own(entry.own_policy_json)
    fields = explained(policy_from_pb(header.policy), object_key, own, recorded)
    if output != "text":
        print_document(
            {"key": {"kind": key[0], "name": key[1]}, "fields": [_document(each) for each in fields]}, output
        )
        return
    rows = [(each.field, _shown(each.value), ", ".join(each.layers)) for each in fields]
    print_table(console(), ("FIELD", "VALUE", "SAID BY"), rows)


def _document(field: ExplainedField) -> dict[str, Any]:
    return {"field": field.field, "value": field.value, "layers": list(field.layers)}


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
