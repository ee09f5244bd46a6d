"""The three sides of a recorded resource, package, baseline and platform, without any service."""

from dataclasses import replace
from typing import Any

import pytest

from planner_svc.drift.detect import selected
from planner_svc.drift.report import DriftInput, LiveState, reports_of, specs_to_compare
from services.core.drift import DriftStatus
from services.core.errors import RequestInvalid
from services.core.model import (
    Baseline,
    InventoryEntry,
    Key,
    Object,
    Origin,
    Reference,
    Resource,
    Spec,
    StackRecord,
    Target,
)
from services.drivers.embedded.kinds import EMBEDDED
from services.kinds.format.canonical import spec_of
from services.packages.package_text import KeptPackage

KEY = Key("NotificationEndpointSlack", "chat")


def facts(key: Key, package: Any, applied: Any, live: Any, **live_text: str) -> DriftInput:
    """A stack of one resource with three sides; None: the side does not have it."""
    entry = InventoryEntry(key, "01", Origin.CREATED)
    objects = () if package is None else (Object(key, "v", spec_of({"name": "chat", **package})),)
    text = live_text.get("text") or spec_of({"name": "chat", **live}).text
    resource = Resource(key.kind, "01", Spec(text, "chat"))
    baselines = {} if applied is None else {key: Baseline(key, spec_of({"name": "chat", **applied}).text)}
    stack = StackRecord("s", Target(), "s", 1, (entry,), revision=1)
    found = LiveState({(key.kind, "01"): resource}, {})
    return DriftInput(stack, stack.resources, KeptPackage(objects), baselines, found, EMBEDDED)


def test_a_credential_that_a_platform_shows_is_masked_on_all_sides() -> None:
    secret = {"token": {"secretRef": {"key": "k"}}}
    [report] = reports_of(facts(KEY, secret, secret, {"token": "hunter2"}))
    assert report.status is DriftStatus.DRIFTED
    [field] = report.fields
    assert (field.path, {field.package, field.applied, field.live}) == ("/token", {'"(sensitive)"'})


def test_a_credential_of_an_object_that_the_revision_lacks_is_masked() -> None:
    [report] = reports_of(facts(KEY, None, {"token": "hunter2", "url": "u"}, {"token": "hunter2", "url": "u"}))
    assert report.status is DriftStatus.PENDING
    [field] = report.fields
    assert (field.path, field.package) == ("", "")
    assert field.applied == field.live == '{"name":"chat","token":"(sensitive)","url":"u"}'
    assert "hunter2" not in str(report)


def test_the_key_of_a_secret_is_no_credential() -> None:
    before, now = ({"token": {"secretRef": {"key": key}}} for key in "ab")
    [report] = reports_of(facts(KEY, before, before, now))
    [field] = report.fields
    assert (field.path, field.applied, field.live) == ("/token/secretRef/key", '"a"', '"b"')


def test_an_invalid_spec_is_unreadable() -> None:
    found = facts(KEY, {}, {}, {}, text="[]")
    assert specs_to_compare(found) == {}
    [report] = reports_of(found)
    assert (report.status, report.problem) == (DriftStatus.UNREADABLE, "a spec is no JSON object")


def test_a_default_that_is_written_out_is_no_difference() -> None:
    key = Key("Bucket", "b")
    found = facts(key, {"schemaType": "implicit"}, {"schemaType": ""}, {})
    assert specs_to_compare(found) == {}
    assert reports_of(found)[0].fields == ()


def test_the_prepared_spec_is_compared_instead_of_that_of_the_package() -> None:
    found = facts(KEY, {"url": "HTTP://A"}, {"url": "http://a"}, {"url": "http://a"})
    [asked] = specs_to_compare(found)
    [report] = reports_of(found)
    assert report.status is DriftStatus.PENDING
    [report] = reports_of(found, {asked: spec_of({"name": "chat", "url": "http://a"})})
    assert (report.status, report.fields) == (DriftStatus.IN_SYNC, ())


def test_references_are_compared_instead_of_the_names_in_the_spec() -> None:
    rule, endpoint = Key("NotificationRule", "r"), InventoryEntry(KEY, "02", Origin.CREATED)
    found = facts(rule, {"endpointName": "chat"}, {"endpointName": ""}, {"endpointName": "x"})
    stack = replace(found.stack, resources=(endpoint, *found.stack.resources))

    def referring(applied: str, live: str) -> DriftInput:
        old, now = (Reference("/endpointName", KEY.kind, each) for each in (applied, live))
        resource = found.live.resources[rule.kind, "01"]._replace(references=(now,))
        baseline = found.baselines[rule]._replace(references=(old,))
        return replace(
            found, stack=stack, live=LiveState({(rule.kind, "01"): resource}, {}), baselines={rule: baseline}
        )

    assert specs_to_compare(referring("02", "02")) == {}
    assert reports_of(referring("02", "02"))[0].fields == ()
    [field] = reports_of(referring("02", "03"))[0].fields
    kind = '"kind":"NotificationEndpointSlack"'
    assert field == (
        "/endpointName",
        "drifted",
        f'{{"id":"02",{kind}}}',
        f'{{"id":"02",{kind}}}',
        f'{{"id":"03",{kind}}}',
    )
    # An undo created the endpoint again: rule and record have its new id, the baseline has the old one.
    [field] = reports_of(referring("01", "02"))[0].fields
    assert (field.path, field.field_class) == ("/endpointName", "converged")


def test_keys_name_entries_kinds_and_families() -> None:
    keys = [Key("Bucket", "b"), Key("CheckDeadman", "c"), Key("CheckThreshold", "d"), KEY]
    stack = StackRecord("s", Target(), "s", 1, tuple(InventoryEntry(key, "01", Origin.CREATED) for key in keys))

    def chosen(*names: Key) -> list[Key]:
        return [entry.key for entry in selected(names, stack)]

    assert chosen() == keys
    assert chosen(Key("Check", "")) == keys[1:3]
    assert chosen(Key("NotificationEndpoint", "chat"), Key("Bucket", "b"), Key("Bucket", "")) == [keys[0], keys[3]]
    with pytest.raises(RequestInvalid, match="called Check:b"):
        chosen(Key("Check", "b"))
