"""Who makes a call, by its listener and its metadata."""

import pytest

from services.access.authentication import LOCAL, Caller, Refusal, authenticate
from services.access.listeners import ListenerKind
from services.access.tokens import digest_of, new_token
from services.system import MachineIds

TOKEN, OTHER = new_token(MachineIds()), new_token(MachineIds())
ID = TOKEN[5:21]
ACCEPTED = digest_of(TOKEN)


@pytest.mark.parametrize("scheme", ["Bearer", "Token", "bEARER", "token"])
@pytest.mark.parametrize(("kind", "name"), [(ListenerKind.LOOPBACK, "local"), (ListenerKind.NETWORK, "operator")])
def test_the_token_of_a_listener_is_accepted(scheme: str, kind: ListenerKind, name: str) -> None:
    metadata = [("x-request-id", "r"), ("authorization", f"{scheme} {TOKEN}")]
    assert authenticate(kind, metadata, ACCEPTED) == Caller(name, ID)


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ([], Refusal.NO_TOKEN),
        ([f"Bearer {TOKEN}", f"Bearer {TOKEN}"], Refusal.SEVERAL_TOKENS),
        ([f"Basic {TOKEN}"], Refusal.NO_SCHEME),
        ([TOKEN], Refusal.NO_SCHEME),
        ([""], Refusal.NO_SCHEME),
        (["Bearer"], Refusal.NO_FORM),
        (["Bearer "], Refusal.NO_FORM),
        ([f"Bearer  {TOKEN}"], Refusal.NO_FORM),
        ([f"Bearer {TOKEN} "], Refusal.NO_FORM),
        ([f"Bearer {TOKEN}\n"], Refusal.NO_FORM),
        ([f"Bearer {TOKEN[:-1]}"], Refusal.NO_FORM),
        ([f"Bearer {TOKEN}x"], Refusal.NO_FORM),
        ([f"Bearer {TOKEN.upper()}"], Refusal.NO_FORM),
        (["Bearer " + "x" * 5000], Refusal.NO_FORM),
        ([f"Bearer {TOKEN}".encode()], Refusal.NO_FORM),
        ([f"Bearer {OTHER}"], Refusal.UNKNOWN),
        ([f"Bearer {TOKEN[:22]}{OTHER[22:]}"], Refusal.UNKNOWN),
    ],
)
def test_any_other_token_is_refused(headers: list[str | bytes], refusal: Refusal) -> None:
    metadata = [("authorization", header) for header in headers]
    for kind in (ListenerKind.LOOPBACK, ListenerKind.NETWORK):
        assert authenticate(kind, metadata, ACCEPTED) is refusal
    assert authenticate(ListenerKind.SOCKET, metadata, None) == LOCAL


def test_without_a_usable_token_nothing_is_accepted() -> None:
    assert authenticate(ListenerKind.LOOPBACK, [("authorization", f"Bearer {TOKEN}")], None) is Refusal.UNKNOWN
