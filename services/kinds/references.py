"""References to environment values and secrets (packages.md 6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.core.model import EnvReference
from services.kinds.canonical import plain
from services.kinds.fields import text_of


@dataclass(frozen=True, slots=True)
class Reference:
    """
    A field that takes a reference: a literal text, or keys that lead to one.

    Attributes:
        literal: The text, when the field is no reference; empty when it is absent.
        env_key: Key of the environment value; empty when there is none.
        default: What stands in for a value that is not supplied; any tree.
        secret_key: Key of the secret, which then decides the value; empty when there is none.
    """

    literal: str = ""
    env_key: str = ""
    default: Any = None
    secret_key: str = ""

    def resolved(self, env: Mapping[str, Any]) -> str:
        """The text, given the supplied values; empty for a secret, whose text nobody here knows."""
        if self.secret_key:
            return ""
        if not self.env_key:
            return self.literal
        return text_of(env.get(self.env_key)) or text_of(self.default) or f"env-{self.env_key}"


def read_reference(value: Any) -> Reference:
    """Read a field that takes a reference; a mapping without a usable key is an absent field."""
    if not isinstance(value, dict):
        return Reference(literal=text_of(value) or "")
    env, secret = value.get("envRef"), value.get("secretRef")
    env, secret = (body if isinstance(body, dict) else {} for body in (env, secret))
    env_key, secret_key = (text_of(body.get("key")) or "" for body in (env, secret))
    return Reference(env_key=env_key, default=env.get("default") if env_key else None, secret_key=secret_key)


def env_reference(resource_field: str, reference: Reference, env: Mapping[str, Any]) -> EnvReference:
    """What an object tells of its reference at *resource_field*."""
    supplied = plain(env.get(reference.env_key))
    return EnvReference(resource_field, reference.env_key, supplied, plain(reference.default))
