"""What the embedded platform keeps of a secret: enough to compare, too little to read."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from services.drivers.mutation import (
    Attach,
    Create,
    Delete,
    DeleteSecret,
    Detach,
    Mutation,
    PutSecret,
    Update,
)

_COST, _BLOCK, _PARALLEL = 2**14, 8, 1
"""Parameters of scrypt: 16 MiB and some 40 ms for each guess, as RFC 7914 advises for interactive use."""

_SALT_BYTES = 16

DrawSalt = Callable[[int], bytes]
"""Draws so many bytes that nobody can guess."""


@dataclass(frozen=True, slots=True)
class KeptSecret:
    """A secret to keep: its key, and a hash of its value."""

    key: str
    hash: str


Item: TypeAlias = Create | Update | Delete | Attach | Detach | KeptSecret | DeleteSecret
"""What the platform carries out: mutations without values of secrets."""


def hashed(value: str, salt: bytes) -> str:
    """
    A hash of *value* with its salt, both as hexadecimal digits, parted by a colon.

    The platform runs nothing, so it never needs a value back; what it does not have, nobody can take from its file.
    """
    digest = hashlib.scrypt(value.encode(), salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL)
    return f"{salt.hex()}:{digest.hex()}"


async def without_values(batch: Sequence[Mutation], draw_salt: DrawSalt) -> list[Item]:
    """The batch with hashes in place of values; made in threads, as each takes a moment in which others are served."""
    puts = [item for item in batch if isinstance(item, PutSecret)]
    hashes = iter(await asyncio.gather(*(asyncio.to_thread(hashed, put.value, draw_salt(_SALT_BYTES)) for put in puts)))
    return [KeptSecret(item.key, next(hashes)) if isinstance(item, PutSecret) else item for item in batch]
