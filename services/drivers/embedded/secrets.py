"""What the embedded platform keeps of a secret: enough to compare, too little to read."""

import asyncio
import hashlib
import secrets
from collections.abc import Sequence
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
    Rejected,
    Update,
)

_COST, _BLOCK, _PARALLEL = 2**14, 8, 1
"""Parameters of scrypt: 16 MiB and some 40 ms for each guess, as RFC 7914 advises for interactive use."""


@dataclass(frozen=True, slots=True)
class KeptSecret:
    """A secret to keep: its key, and a hash of its value."""

    key: str
    hash: str


Item: TypeAlias = Create | Update | Delete | Attach | Detach | KeptSecret | DeleteSecret | Rejected
"""What the platform carries out: mutations without values of secrets."""


def hashed(value: str) -> str:
    """
    A hash of *value* with its salt, both as hexadecimal digits, parted by a colon; another one each time.

    The platform runs nothing, so it never needs a value back; what it does not have, nobody can take from its file.
    """
    salt = secrets.token_bytes(16)
    digest = hashlib.scrypt(value.encode(), salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL)
    return f"{salt.hex()}:{digest.hex()}"


async def without_values(batch: Sequence[Mutation | Rejected]) -> list[Item]:
    """The batch with hashes in place of values; made in threads, as each takes a moment in which others are served."""
    puts = [item for item in batch if isinstance(item, PutSecret)]
    hashes = iter(await asyncio.gather(*(asyncio.to_thread(hashed, item.value) for item in puts)))
    return [KeptSecret(item.key, next(hashes)) if isinstance(item, PutSecret) else item for item in batch]
