"""References to environment values and secrets (docs/reference/package-format.md, "References")."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from services.core.model import EnvReference
from services.kinds.diagnostics import Code
from services.kinds.format.canonical import plain
from services.kinds.format.fields import Note, text_of
from services.kinds.format.shapes import Schema, object_schema
from services.kinds.format.timestamp import Timestamp


class ReferenceSpec(NamedTuple):
    """
    A field that takes a reference: a literal text, or keys that lead to one.

    A named tuple, as each object has several: it is made several times as fast as a frozen dataclass.

    Attributes:
        literal: The text, when the field is no reference; empty when it is absent.
        env_key: Key of the environment value; empty when there is none.
        default: The value where none is supplied; any tree.
        secret_key: Key of the secret, which takes precedence; empty when there is none.
    """

    literal: str = ""
    env_key: str = ""
    default: Any = None
    secret_key: str = ""

    @property
    def is_one(self) -> bool:
        """Whether it is a reference, not a literal."""
        return bool(self.env_key or self.secret_key)

    def resolved(self, env: Mapping[str, Any]) -> str:
        """The text, with the supplied values; empty for a secret, whose text is unknown here."""
        if self.secret_key:
            return ""
        if not self.env_key:
            return self.literal
        return text_of(env.get(self.env_key)) or text_of(self.default) or f"env-{self.env_key}"

    def written(self) -> dict[str, Any]:
        """The reference as packages write it."""
        written: dict[str, Any] = {}
        if self.env_key:
            # A date has no text in a name. Written back as text it would have one.
            has_default_text = self.default is not None and not isinstance(self.default, Timestamp)
            written["envRef"] = {"key": self.env_key} | ({"default": plain(self.default)} if has_default_text else {})
        if self.secret_key:
            written["secretRef"] = {"key": self.secret_key}
        return written


class UsedReference(NamedTuple):
    """
    A reference that an object uses.

    Attributes:
        reference: The reference.
        resource_field: Its field in the list of the object's environment references; empty: it is not listed.
        value_type: Type of the value, for parameters of queries.
        registered: Whether it counts as missing where no value or secret is supplied.
    """

    reference: ReferenceSpec
    resource_field: str = ""
    value_type: str = ""
    registered: bool = True

    def listed(self, env: Mapping[str, Any]) -> EnvReference:
        """Its entry in the list of the object's environment references."""
        supplied = plain(env.get(self.reference.env_key))
        return EnvReference(
            self.resource_field, self.reference.env_key, supplied, plain(self.reference.default), self.value_type
        )


def read_reference(value: Any) -> ReferenceSpec:
    """Read a field that takes a reference; a mapping without a usable key is an absent field."""
    if not isinstance(value, dict):
        return ReferenceSpec(text_of(value) or "")
    env, secret = value.get("envRef"), value.get("secretRef")
    env, secret = (body if isinstance(body, dict) else {} for body in (env, secret))
    env_key, secret_key = (text_of(body.get("key")) or "" for body in (env, secret))
    return ReferenceSpec(env_key=env_key, default=env.get("default") if env_key else None, secret_key=secret_key)


_KEY: Schema = {"description": "Key of the value", "type": ["string", "number"]}
_ENV_REF: Schema = {
    "description": "A value that the caller supplies under a key",
    "properties": {"key": _KEY, "default": {"description": "Used when no value is supplied"}},
}
_SECRET_REF: Schema = {"description": "A secret of the platform, by its key", "properties": {"key": _KEY}}
_LITERAL: Schema = {"type": ["string", "number", "null"]}


@dataclass(frozen=True, slots=True)
class Referable:
    """The shape of a field that takes a literal or a reference; its kind reads it with ``read_reference``."""

    secret: bool = False
    absent: str = ""

    def read(self, value: Any) -> str:
        """The literal; empty for a reference, which is resolved later."""
        return text_of(value) or ""

    def problem(self, value: str) -> str:
        """Empty: its kind checks whether it is required."""
        return ""

    def is_written_out(self, value: Any) -> bool:
        """Whether *value* is the secret itself, as a text or by an environment value, not the key of one."""
        if not self.secret:
            return False
        reference = read_reference(value)
        return bool(reference.literal or reference.env_key) and not reference.secret_key

    def remark(self, value: Any) -> Note | None:
        """The remark on a secret itself, or on neither text nor reference; never quotes *value*."""
        if self.is_written_out(value):
            way = "comes from an environment value" if isinstance(value, dict) else "is written out"
            text = f"this credential {way}, and no plan accepts that; write {{secretRef: {{key: KEY}}}}"
            return Note(Code.CREDENTIAL_WRITTEN_OUT, text)
        if text_of(value) is not None or read_reference(value).is_one:
            return None
        ways = "{envRef: {key: KEY}}" + (" or {secretRef: {key: KEY}}" if self.secret else "")
        text = f"this is neither a text nor a reference, so it will be ignored; write a text or {ways}"
        return Note(Code.VALUE_IGNORED, text)

    def schema(self) -> Schema:
        """A literal or a reference. Any other mapping counts as absent, so it is valid too."""
        secret = {"secretRef": _SECRET_REF} if self.secret else {}
        return {"anyOf": [_LITERAL, object_schema({"envRef": _ENV_REF, **secret})]}
