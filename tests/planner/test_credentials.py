"""No plan holds a credential, and no message about a plan does."""

import string
from typing import Any
from urllib.parse import quote

import pytest

from planner_svc.credentials import refuse_written_secrets, with_references
from planner_svc.matching.desired import Desired
from services.core.errors import RequestInvalid
from services.core.model import Credential, EnvReference, Key, Location, Object, Package, WrittenValue
from services.drivers.embedded.kinds import EMBEDDED
from services.rpc.errors import to_status
from tests.planner.world import an_object

CANARY = "canary-8a1f"
NAMED = {"secretRef": {"key": "k"}}

SENSITIVE = [(kind, path[1:]) for kind, traits in EMBEDDED.kinds.items() for path in traits.sensitive_paths]


def refuse(kind: str, field: str, value: Any, skip: frozenset[Key] = frozenset()) -> None:
    package = Package((an_object("Label", "l"), an_object(kind, "e", **{field: value})))
    refuse_written_secrets(Desired(package, skip), EMBEDDED)


@pytest.mark.parametrize(("kind", "field"), SENSITIVE)
@pytest.mark.parametrize("value", [CANARY, [CANARY], {"secretRef": CANARY}, {**NAMED, "text": CANARY}, 17])
def test_a_credential_is_refused_with_its_location_and_the_remedy(kind: str, field: str, value: Any) -> None:
    with pytest.raises(RequestInvalid) as caught:
        refuse(kind, field, value)
    assert f"{field} of {kind} 'e'" in str(caught.value)
    assert "{secretRef: {key: KEY}}" in str(caught.value)
    assert CANARY not in f"{caught.value} {caught.value.metadata}"


@pytest.mark.parametrize(("kind", "field"), SENSITIVE)
@pytest.mark.parametrize("value", [NAMED, "", None])
def test_the_key_of_a_secret_is_no_credential(kind: str, field: str, value: Any) -> None:
    refuse(kind, field, value)


def test_an_object_that_is_skipped_may_hold_anything() -> None:
    """A skipped object is in no plan."""
    refuse("NotificationEndpointSlack", "token", CANARY, frozenset({Key("NotificationEndpointSlack", "")}))


HTTP = "NotificationEndpointHTTP"


def test_credentials_are_named_with_the_locations_that_the_parser_knows() -> None:
    """The platform declares which fields hold credentials; one that the parser does not know has no location."""
    package = Package((an_object(HTTP, "e", token=CANARY, username=CANARY, password=NAMED),))
    known = [
        Credential(Key(HTTP, "e"), "/username", Location("a.yml", 7, 13)),
        Credential(Key(HTTP, "e"), "/url", Location("a.yml", 8, 3)),
        Credential(Key(HTTP, "other"), "/token", Location("a.yml", 9, 3)),
    ]
    with pytest.raises(RequestInvalid) as caught:
        refuse_written_secrets(Desired(package), EMBEDDED, known)
    assert str(caught.value) == (
        "package: a plan is shown and stored, so write {secretRef: {key: KEY}} instead of the credential in"
        f" token of {HTTP} 'e', a.yml:7:13 (username of {HTTP} 'e')"
    )


@pytest.mark.parametrize(
    ("source", "shown", "more"),
    [("a.yml", 10, "and 490 more"), ("long/" * 500 + "a.yml", 10, "and 490 more"), ("é" * 500, 3, "and 497 more")],
)
def test_of_many_only_the_first_are_named(source: str, shown: int, more: str) -> None:
    """An error travels in trailers, which hold 8 KiB."""
    many = Package(tuple(an_object("NotificationEndpointSlack", f"s{n}", token=CANARY) for n in range(500)))
    known = [Credential(item.key, "/token", Location(source, 3, 4)) for item in many.objects]
    with pytest.raises(RequestInvalid, match=more) as caught:
        refuse_written_secrets(Desired(many), EMBEDDED, known)
    assert str(caught.value).count(":3:4 (token of") == shown
    # The status message is percent-encoded; the details, of which three parts have the text, are in base 64.
    assert (
        len(quote(str(caught.value), safe=string.punctuation + " ")) + to_status(caught.value).ByteSize() * 4 / 3 < 8000
    )


SLACK = "NotificationEndpointSlack"


def planned_as_secrets(
    *objects: Object, stack_id: str = "s", skip: frozenset[Key] = frozenset()
) -> tuple[Desired, dict[str, str]]:
    return with_references(Desired(Package(objects), skip), EMBEDDED, stack_id)


def test_credentials_become_references_under_keys_of_their_own() -> None:
    """The key is the same for each apply to a stack; without a stack, it depends on the display name."""
    items = an_object(SLACK, "e", token=CANARY, url="u"), an_object("Label", "l")
    desired, secrets = planned_as_secrets(*items)
    ((key, text),) = secrets.items()
    assert text == CANARY
    assert (len(key), key[16:]) == (16 + len("-token"), "-token")
    assert desired.package.objects[0].spec.value == {**items[0].spec.value, "token": {"secretRef": {"key": key}}}
    assert (desired.package.objects[1], desired.secret_keys) == (items[1], frozenset({key}))
    assert planned_as_secrets(*items)[1].keys() == {key}
    assert planned_as_secrets(*items, stack_id="other")[1].keys() != {key}
    named = [planned_as_secrets(an_object(SLACK, "e", token=CANARY, name=name), stack_id="")[1] for name in "ab"]
    assert named[0].keys() != named[1].keys()


def test_the_environment_reference_of_a_credential_is_dropped_with_it() -> None:
    """Else plan, history and summary would have the credential as its value."""
    item = an_object(SLACK, "e", token=CANARY)._replace(
        env_references=(EnvReference("spec.token", "t", CANARY, None), EnvReference("metadata.name", "n", "e", None)),
        written=(WrittenValue("/spec/token", '{"envRef":{"key":"t"}}'), WrittenValue("/metadata/name", "{}")),
    )
    (changed,) = planned_as_secrets(item)[0].package.objects
    assert [each.resource_field for each in changed.env_references] == ["metadata.name"]
    assert [each.pointer for each in changed.written] == ["/metadata/name"]
    assert CANARY not in repr(changed)


@pytest.mark.parametrize("token", [NAMED, "", 17, [CANARY], {"secretRef": CANARY}])
def test_only_a_text_becomes_a_secret(token: Any) -> None:
    item = an_object(SLACK, "e", token=token)
    desired, secrets = planned_as_secrets(item)
    assert (desired.package.objects, secrets, desired.secret_keys) == ((item,), {}, frozenset())


def test_a_skipped_object_supplies_no_secret() -> None:
    item = an_object(SLACK, "e", token=CANARY)
    desired, secrets = planned_as_secrets(item, skip=frozenset({Key(SLACK, "")}))
    assert (desired.package.objects, secrets) == ((item,), {})
