"""What the embedded platform stores of a secret: a hash, which can be compared but not read."""

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
"""Draws a number of unpredictable bytes."""


@dataclass(frozen=True, slots=True)
class KeptSecret:
    """A secret to store: its key, and a hash of its value."""

    key: str
    hash: str


Item: TypeAlias = Create | Update | Delete | Attach | Detach | KeptSecret | DeleteSecret
"""An item of a batch as the platform stores it: a mutation without the value of a secret."""


def hashed(value: str, salt: bytes) -> str:
    """
    A hash of *value* with its salt, both in hexadecimal, separated by a colon.

    The platform executes nothing, so it never needs the value itself; and a value that is not stored cannot leak.
    """
    digest = hashlib.scrypt(value.encode(), salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL)
    return f"{salt.hex()}:{digest.hex()}"


async def without_values(batch: Sequence[Mutation], draw_salt: DrawSalt) -> list[Item]:
    """The batch with hashes in place of values; each is computed in a thread, so that other calls go on."""
    puts = [item for item in batch if isinstance(item, PutSecret)]
    hashes = iter(await asyncio.gather(*(asyncio.to_thread(hashed, put.value, draw_salt(_SALT_BYTES)) for put in puts)))
    return [KeptSecret(item.key, next(hashes)) if isinstance(item, PutSecret) else item for item in batch]
