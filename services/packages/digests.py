"""The digest of a version (docs/dependencies.md, "Digests")."""

import hashlib
from collections.abc import Mapping


def digest_of(files: Mapping[str, bytes]) -> str:
    """
    The digest of the files of a version, by path.

    It hashes the text that ``sha256sum`` prints for them in the order of the bytes of their paths.
    """
    printed = "".join(f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(files, key=str.encode))
    return f"sha256:{hashlib.sha256(printed.encode()).hexdigest()}"
