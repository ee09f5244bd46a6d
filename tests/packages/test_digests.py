"""The digest of a version (docs/dependencies.md, "Digests")."""

import subprocess
from pathlib import Path

from services.packages.digests import digest_of


def test_sha256sum_shows_the_digest(tmp_path: Path) -> None:
    files = {"package.yaml": b"a\n", "labels/team.yaml": b"\xff\x00", "Z.yaml": b"", "labels-2.yaml": b"b"}
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    # As in the page: the files in the order of their bytes, as `LC_ALL=C sort` has them.
    command = 'LC_ALL=C sha256sum $(printf "%s\\n" "$@" | LC_ALL=C sort) | sha256sum'
    shown = subprocess.run(
        ["sh", "-c", command, "sh", *files], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert digest_of(files) == f"sha256:{shown.stdout.split()[0]}"


def test_the_order_of_the_files_does_not_count() -> None:
    files = {"package.yaml": b"a", "b.yaml": b"b"}
    assert digest_of(files) == digest_of(dict(reversed(files.items())))
