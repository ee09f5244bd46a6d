"""``pkger functions``: the functions that phases may call."""

from rich.text import Text

from services.actions.signatures import FUNCTIONS, Argument, Signature
from services.cli.errors import CommandFailed
from services.cli.output.consoles import console
from services.cli.output.documents import print_document
from services.cli.output.tables import print_table
from services.kinds.format.shapes import nearest


def print_functions(name: str, output: str) -> None:
    """
    Print the newest version of each function, or of the one called *name*.

    Raises:
        CommandFailed: There is none of that name.
    """
    names = (name,) if name else FUNCTIONS.names
    signatures = [signature for each in names if (signature := FUNCTIONS.find(each))]
    if not signatures:
        alike = nearest(name, FUNCTIONS.names)
        hint = f"did you mean {alike}?" if alike else f"functions: {', '.join(FUNCTIONS.names)}"
        raise CommandFailed(f"there is no function {name!r}; {hint}")
    if output != "text":
        print_document([_document(signature) for signature in signatures], output)
        return
    rows = [
        (
            f"{each.name} v{each.version}",
            ", ".join(map(_argument, each.arguments)),
            ", ".join(each.outputs),
            each.effect,
            each.recovery,
        )
        for each in signatures
    ]
    print_table(console(), ("FUNCTION", "ARGUMENTS", "OUTPUTS", "EFFECT", "RECOVERY"), rows)
    console().print(Text("* required"))


def _argument(argument: Argument) -> str:
    return f"{argument.name}{'*' if argument.required else ''}"


def _document(signature: Signature) -> dict[str, object]:
    return {
        "name": signature.name,
        "version": signature.version,
        "arguments": [
            {
                "name": argument.name,
                "type": argument.type.value,
                "required": argument.required,
                **({} if argument.default is None else {"default": argument.default}),
                "takes_secrets": argument.takes_secrets,
            }
            for argument in signature.arguments
        ],
        "outputs": list(signature.outputs),
        "effect": signature.effect.value,
        "recovery": signature.recovery.value,
    }
