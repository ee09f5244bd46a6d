"""The form of tokens, and the files that hold one."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.access.token_file import TokenFile, TokenUnusable, home_token, rotate_home_token
from services.access.tokens import digest_of, new_token
from services.system import MachineIds

TOKEN = new_token(MachineIds())
OTHER = new_token(MachineIds())


def test_a_new_token_has_an_id_and_256_random_bits() -> None:
    digest = digest_of(TOKEN)
    assert digest
    assert TOKEN.startswith(f"pkg1_{digest.id}_")
    assert len(TOKEN) == len("pkg1__") + 16 + 43
    assert TOKEN != OTHER


@given(st.text() | st.integers(0, 65).map(lambda length: TOKEN[:length]) | st.text().map(lambda more: TOKEN + more))
def test_no_other_text_is_the_token(text: str) -> None:
    digest, expected = digest_of(text), digest_of(TOKEN)
    assert expected
    assert (digest is not None and digest.matches(expected)) is (text == TOKEN)


def test_a_right_id_with_a_wrong_secret_is_another_token() -> None:
    forged = digest_of(TOKEN[:22] + OTHER[22:])
    expected = digest_of(TOKEN)
    assert forged
    assert expected
    assert forged.id == expected.id
    assert not forged.matches(expected)


def written(folder: Path, text: str = TOKEN, mode: int = 0o600) -> TokenFile:
    path = folder / "a-token"
    path.write_text(text)
    path.chmod(mode)
    return TokenFile(path)


def test_a_file_may_end_with_a_line_break(tmp_path: Path) -> None:
    assert written(tmp_path, f"{TOKEN}\n").token() == TOKEN


@pytest.mark.parametrize(
    "text",
    ["", "\n", "a-token", TOKEN[:-1], f"{TOKEN}{TOKEN}", f"{TOKEN}\n{OTHER}", f"Bearer {TOKEN}", "x" * 5000, "\ud800"],
    ids=range(9),
)
def test_a_file_without_a_token_is_refused_and_not_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a-token"
    path.write_bytes(text.encode(errors="surrogatepass"))
    path.chmod(0o600)
    with pytest.raises(TokenUnusable, match=f"{path} holds no token") as raised:
        TokenFile(path).token()
    assert TOKEN[22:] not in str(raised.value)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o666, 0o601])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(TokenUnusable, match="run chmod 600 on it, and replace the token"):
        written(tmp_path, mode=mode).token()


def test_what_is_no_file_of_this_user_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "a-token")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe", 0o600)
    problems = {"link": "is a symbolic link", "folder": "is not a regular file", "pipe": "is not a regular file"}
    for name, problem in {**problems, "nothing": "cannot be read"}.items():
        with pytest.raises(TokenUnusable, match=problem):
            TokenFile(tmp_path / name).token()


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert file.token() == TOKEN
    (tmp_path / "new").write_text(OTHER)
    (tmp_path / "new").chmod(0o600)
    (tmp_path / "new").replace(file.path)
    assert file.token() == OTHER
    file.path.unlink()
    with pytest.raises(TokenUnusable, match="cannot be read"):
        file.token()
    written(tmp_path)
    assert file.token() == TOKEN


def test_the_token_of_a_home_is_made_once(tmp_path: Path) -> None:
    home, reports = tmp_path / "home", list[Path]()
    first = home_token(home, report=reports.append).token()
    assert home_token(home, report=reports.append).token() == first
    assert reports == [home / "token"]
    assert (home / "token").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in home.iterdir()] == ["token"]


def test_a_rotated_token_replaces_the_one_before(tmp_path: Path) -> None:
    before = home_token(tmp_path)
    first, second = before.token(), rotate_home_token(tmp_path).token()
    assert before.token() == second != first
    assert [each.name for each in tmp_path.iterdir()] == ["token"]


def test_a_home_that_others_control_gets_no_token(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(TokenUnusable, match="every user of this machine may write"):
        home_token(tmp_path)
    assert not list(tmp_path.iterdir())
