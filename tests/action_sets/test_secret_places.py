"""Where an applier reads the secrets of action sets, and what it says of those that it cannot read."""

from pathlib import Path

import pytest

from applier_svc.actions.secrets import LARGEST, SecretMissingError, SecretPlaces
from services.actions.definitions import SecretPlace, SecretSource


@pytest.fixture
def places(tmp_path: Path) -> SecretPlaces:
    folder = tmp_path / "secrets"
    (folder / "s3").mkdir(parents=True)
    (tmp_path / "outside").write_text("canary")
    (folder / "s3" / "key").write_text("in a file\n")
    (folder / "link").symlink_to(folder / "s3" / "key")
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "large").write_text("x" * (LARGEST + 1))
    (folder / "binary").write_bytes(b"\xff\xff\xff\xff")
    (folder / "short").write_text("abc\n")
    return SecretPlaces({"A": "in a variable", "B": "abc"}, folder)


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (SecretPlace.VARIABLE, "A", "in a variable"),
        (SecretPlace.FILE, "s3/key", "in a file"),
        (SecretPlace.FILE, "link", "in a file"),
    ],
)
def test_a_secret_is_read_where_the_action_set_says(
    places: SecretPlaces, place: SecretPlace, name: str, value: str
) -> None:
    assert places.read("pg.password", SecretSource(place, name)) == value


@pytest.mark.parametrize(
    ("place", "name", "problem"),
    [
        (SecretPlace.VARIABLE, "C", "the applier has no variable PKGER_SECRET_C"),
        (SecretPlace.VARIABLE, "B", "has 3 characters; 4 to 65,536 are accepted"),
        (SecretPlace.FILE, "none", "file none: No such file or directory"),
        (SecretPlace.FILE, "s3", "file s3: Is a directory"),
        (SecretPlace.FILE, "../outside", "the name leads out of the folder; write a path below it"),
        (SecretPlace.FILE, "/etc/passwd", "the name leads out of the folder; write a path below it"),
        (SecretPlace.FILE, "out", "file out: a link leads out of the folder; put the file there"),
        (SecretPlace.FILE, "large", "file large: the file has more than 65,536 bytes"),
        (SecretPlace.FILE, "binary", "file binary: it is no UTF-8 text"),
        (SecretPlace.FILE, "short", "has 3 characters; 4 to 65,536 are accepted"),
    ],
)
def test_a_secret_that_cannot_be_read_is_named_with_the_reason(
    places: SecretPlaces, place: SecretPlace, name: str, problem: str
) -> None:
    with pytest.raises(SecretMissingError) as raised:
        places.read("pg.password", SecretSource(place, name))
    assert problem in str(raised.value)
    assert str(raised.value).startswith("secret pg.password")
    assert "canary" not in str(raised.value)


def test_without_a_folder_no_file_is_read() -> None:
    with pytest.raises(SecretMissingError, match="set PKGER_SECRETS_DIR"):
        SecretPlaces({}, None).read("pg.password", SecretSource(SecretPlace.FILE, "s3/key"))
