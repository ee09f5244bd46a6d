"""
Signatures of functions that the product does not have, for the rules that no function of the product shows: choices,
rules between arguments, commands, calls of other functions, calls that run at most once.
"""

from services.actions.signatures import (
    FUNCTIONS,
    Argument,
    ArgumentForm,
    ArgumentType,
    Effect,
    Needs,
    OnceWith,
    OneOf,
    Recovery,
    Signature,
    SignatureTable,
)

_SNAPSHOT = Argument("snapshot", ArgumentType.STRING, required=True)
_STACK = Argument("stack", ArgumentType.STRING)
_KEY = Argument("key", ArgumentType.STRING, required=True, form=ArgumentForm.STORAGE_KEY)
_PROFILE = Argument("profile", ArgumentType.STRING)
_OF_CHANGES = ("operation", "created", "updated", "deleted", "noChange")


def _with(name: str, *arguments: Argument, outputs: tuple[str, ...]) -> Signature:
    """A function of the product, with further arguments and outputs."""
    signature = FUNCTIONS.find(name)
    assert signature
    return Signature(
        name,
        1,
        (*signature.arguments, *arguments),
        (*signature.outputs, *outputs),
        signature.effect,
        signature.recovery,
    )


LATER_FUNCTIONS = SignatureTable(
    (
        _with("ExportStack", Argument("data", ArgumentType.BOOL, default=False), outputs=("dataBytes",)),
        _with("RestoreStack", Argument("data", ArgumentType.BOOL, default=True), outputs=("dataRestored",)),
        *(signature for name in ("VerifySnapshot", "DeleteSnapshot", "Sleep") if (signature := FUNCTIONS.find(name))),
        Signature(
            "ApplyPackage",
            1,
            (
                Argument("package", ArgumentType.STRING),
                Argument("url", ArgumentType.STRING),
                Argument("snapshot", ArgumentType.STRING),
                Argument("encoding", ArgumentType.STRING, default="yaml", choices=("yaml", "json")),
                _STACK,
                Argument("env", ArgumentType.MAP),
                Argument("secrets", ArgumentType.STRING_MAP, takes_secrets=True),
                Argument("allowEmpty", ArgumentType.BOOL, default=False),
                Argument("allowMissing", ArgumentType.BOOL, default=False),
            ),
            _OF_CHANGES,
            Effect.STACK,
            Recovery.ATTACH,
            (OneOf(("package", "url", "snapshot")),),
        ),
        Signature(
            "SetFields",
            1,
            (
                Argument("set", ArgumentType.MAP),
                Argument("restore", ArgumentType.LIST),
                Argument("kind", ArgumentType.STRING),
                Argument("name", ArgumentType.STRING),
                Argument("all", ArgumentType.BOOL, default=False),
            ),
            ("operation", "original", "changed"),
            Effect.STACK,
            Recovery.ATTACH,
            (OneOf(("set", "restore")), Needs("set", ("kind",)), OneOf(("name", "all"), condition="set")),
        ),
        Signature(
            "ReadResource",
            1,
            (
                Argument("kind", ArgumentType.STRING, required=True),
                Argument("name", ArgumentType.STRING, required=True),
            ),
            ("exists", "id", "spec"),
            Effect.READ,
            Recovery.RERUN,
        ),
        Signature(
            "WaitUntil",
            1,
            (
                Argument("conditions", ArgumentType.LIST, required=True),
                Argument("match", ArgumentType.STRING, default="all", choices=("all", "any")),
                Argument("interval", ArgumentType.DURATION, default="2s"),
            ),
            ("waited",),
            Effect.READ,
            Recovery.RERUN,
        ),
        Signature(
            "HTTPRequest",
            1,
            (
                Argument("url", ArgumentType.STRING, required=True),
                Argument(
                    "method",
                    ArgumentType.STRING,
                    default="GET",
                    choices=("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"),
                ),
                Argument("headers", ArgumentType.STRING_MAP, takes_secrets=True),
                Argument("body", ArgumentType.ANY, takes_secrets=True),
                Argument("expect", ArgumentType.INTS),
                Argument("save", ArgumentType.BOOL, default=False),
            ),
            ("status", "headers", "body", "json", "snapshot"),
            Effect.OUTSIDE,
            Recovery.RERUN,
            once_with=OnceWith("method", frozenset(("POST", "PATCH"))),
        ),
        Signature(
            "ForEach",
            1,
            (
                Argument("items", ArgumentType.LIST, required=True, maximum=1_000),
                Argument("func", ArgumentType.STRING, required=True, form=ArgumentForm.FUNCTION),
                Argument("args", ArgumentType.MAP, required=True, form=ArgumentForm.CALL_ARGUMENTS),
                Argument("parallel", ArgumentType.INT, default=1, minimum=1, maximum=16),
            ),
            ("results", "count"),
            Effect.NONE,
            Recovery.RERUN,
        ),
        Signature(
            "RunCommand",
            1,
            (
                Argument("command", ArgumentType.STRINGS, required=True, form=ArgumentForm.COMMAND),
                Argument("env", ArgumentType.STRING_MAP, takes_secrets=True, form=ArgumentForm.VARIABLES),
                Argument("stdin", ArgumentType.STRING, takes_secrets=True),
                Argument("files", ArgumentType.MAP, takes_secrets=True, form=ArgumentForm.PATH_KEYS),
                Argument("outputs", ArgumentType.STRINGS),
                Argument("collect", ArgumentType.STRING_MAP, form=ArgumentForm.PATH_VALUES),
                Argument("exitCodes", ArgumentType.INTS),
            ),
            ("exitCode",),
            Effect.OUTSIDE,
            Recovery.ONCE,
            output_arguments=("outputs", "collect"),
        ),
        Signature(
            "CopyToLocation",
            1,
            (_SNAPSHOT, _KEY, _PROFILE),
            ("key", "profile", "bytes", "digest"),
            Effect.OUTSIDE,
            Recovery.RERUN,
        ),
        Signature(
            "CopyFromLocation",
            1,
            (_KEY, _PROFILE, Argument("digest", ArgumentType.STRING)),
            ("snapshot", "bytes"),
            Effect.OUTSIDE,
            Recovery.RERUN,
        ),
        Signature("DeleteFromLocation", 1, (_KEY, _PROFILE), ("deleted",), Effect.OUTSIDE, Recovery.RERUN),
    )
)
"""All functions of the recorded cases."""
