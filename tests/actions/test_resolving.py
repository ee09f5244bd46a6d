"""Requests to run actions become action sets that have all that they use, or lists of what is wrong."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.actions.canonical import definition_document
from services.actions.definitions import (
    STACK,
    ActionObject,
    Blueprint,
    SecretPlace,
    SecretSource,
)
from services.actions.durations import DAY, MINUTE
from services.actions.life import ActionSetState
from services.actions.pinned import LARGEST_PINNED, PinnedAction, PinnedActionSet, pinned_text, read_pinned
from services.actions.resolving import (
    EarlierActionSet,
    NeededDefinitions,
    RunRequest,
    StoredDefinitions,
    artifact_of,
    check_secrets,
    made_name,
    needed_definitions,
    read_request,
    resolve,
)
from services.actions.signatures import FUNCTIONS, Signature, SignatureTable
from services.core.errors import ActionSetNotComplete, RequestInvalid
from services.core.model import Severity, Violation
from services.kinds.format.package_names import is_package_name
from tests.actions.documents import ACTION_SET, BLUEPRINT, CONFIG_MAP, REMOVED, SUCCESSOR, changed, sound
from tests.actions.functions import LATER_FUNCTIONS

TIME = "2026-11-22T10:05:09Z"
SUFFIX = "x7k2p"
SNAPSHOT = "sha256:" + "ab" * 32
PROD = ActionObject(STACK, "prod", platform="embedded", org="default")
NOTHING = StoredDefinitions({}, {})
STORED = StoredDefinitions({"stack-backup": BLUEPRINT}, {"names": CONFIG_MAP})
TOKEN = SecretSource(SecretPlace.VARIABLE, "SLACK_TOKEN")

[DEFINITION] = sound(BLUEPRINT).definitions
assert isinstance(DEFINITION, Blueprint)
ACTIONS = DEFINITION.actions

BEFORE = PinnedActionSet(
    "nightly",
    TIME,
    (
        PinnedAction(
            "backup",
            "stack-backup",
            ACTIONS["backup"],
            PROD,
            {"tag": "night", "mode": "full", "reason": "from before"},
            config_maps={"names": {"stack": "prod"}, "others": {"x": "y"}},
            secrets={"slack": {"token": TOKEN}, "pg": {"password": TOKEN}},
        ),
    ),
    blueprints={"stack-backup": ACTIONS},
)
EARLIER = EarlierActionSet(
    BEFORE,
    ActionSetState.COMPLETE,
    {(0, "stackBackup"): {"snapshot": SNAPSHOT}, (0, "other"): {"x": "y"}, (1, "stackBackup"): {"snapshot": "z"}},
)


def requested(*documents: Any, is_pinned: bool = False, table: SignatureTable = LATER_FUNCTIONS) -> RunRequest:
    request = read_request(documents, table, is_pinned)
    assert isinstance(request, RunRequest), request
    return request


def resolved(
    *documents: Any,
    stored: StoredDefinitions = STORED,
    earlier: EarlierActionSet | None = None,
    is_pinned: bool = False,
    table: SignatureTable = LATER_FUNCTIONS,
) -> PinnedActionSet | tuple[Violation, ...]:
    return resolve(requested(*documents, is_pinned=is_pinned), stored, earlier, table, TIME, SUFFIX)


def pinned(*documents: Any, **surroundings: Any) -> PinnedActionSet:
    answer = resolved(*documents, **surroundings)
    assert isinstance(answer, PinnedActionSet), answer
    return answer


def problems(*documents: Any, **surroundings: Any) -> list[str]:
    answer = resolved(*documents, **surroundings)
    assert isinstance(answer, tuple)
    return [f"{each.path}: {each.reason}" for each in answer]


def successor(**overrides: Any) -> dict[str, Any]:
    return changed(SUCCESSOR, "spec.overrides", {"options": {"reason": "again"}, **overrides})


def versions(action: PinnedAction) -> list[int | None]:
    return [phase.version for phase in action.action.phases]


def test_a_request_is_pinned() -> None:
    answer = pinned(ACTION_SET)
    assert (answer.name, answer.time, answer.wait, answer.predecessor) == ("nightly", TIME, 30 * MINUTE, "")
    backup, restore = answer.actions
    assert backup == PinnedAction(
        "backup",
        "stack-backup",
        backup.action,
        ActionObject(STACK, "prod", platform="embedded", org="factory"),
        {"tag": "night", "mode": "full"},
    )
    assert restore == PinnedAction(
        "restore",
        "stack-backup",
        restore.action,
        PROD,
        {"reason": "test"},
        {"stackBackup": {"snapshot": "sha256-x"}},
        {"names": {"stack": "prod"}},
        {
            "slack": {
                "token": TOKEN,
                "key": SecretSource(SecretPlace.FILE, "slack/key"),
                "url": SecretSource(SecretPlace.REQUEST),
            }
        },
    )
    assert (versions(backup), versions(restore)) == ([1, 1, 1], [1, 1])
    assert backup.action.defer_phase
    assert backup.action.defer_phase.version == 1
    assert answer.blueprints["stack-backup"].keys() == ACTIONS.keys()
    assert read_pinned(pinned_text(answer)) == answer


def test_settings_of_the_request_are_kept() -> None:
    spec = {"sequential": True, "timeout": "1h", "wait": "0s", "ttl": "24h", "actions": ACTION_SET["spec"]["actions"]}
    answer = pinned({**ACTION_SET, "spec": spec, "metadata": {"labels": {"why": "test"}}})
    assert (answer.sequential, answer.timeout, answer.wait, answer.ttl) == (True, 60 * MINUTE, 0, DAY)
    assert (answer.name, answer.labels) == ("backup-x7k2p", {"why": "test"})


def test_definitions_of_the_request_take_the_place_of_stored_ones() -> None:
    other = changed(BLUEPRINT, "spec.actions.backup.options.tag.default", "other")
    by_name = changed(
        changed(ACTION_SET, "spec.actions[0].options", {}), "spec.actions[1].configMaps.names", {"name": "names"}
    )
    config_map = changed(CONFIG_MAP, "spec.data.stack", "edge")
    mixed = pinned(config_map, by_name, other)
    assert mixed.actions[0].options == {"tag": "other", "mode": "full"}
    assert mixed.actions[1].config_maps == {"names": {"stack": "edge"}}
    from_store = pinned(by_name)
    assert from_store.actions[0].options == {"tag": "manual", "mode": "full"}
    assert from_store.actions[1].config_maps == {"names": {"stack": "prod"}}


def test_what_is_pinned_does_not_change_with_the_text_of_the_definitions() -> None:
    [definition] = sound(BLUEPRINT).definitions
    assert definition
    canonical = StoredDefinitions({"stack-backup": definition_document(definition)}, {"names": CONFIG_MAP})
    assert pinned_text(pinned(ACTION_SET, stored=canonical)) == pinned_text(pinned(ACTION_SET))


def test_the_definitions_that_a_request_needs() -> None:
    by_name = changed(ACTION_SET, "spec.actions[1].configMaps.names", {"name": "names"})
    needed = NeededDefinitions(("stack-backup",), ("names",))
    assert needed_definitions(requested(by_name)) == needed
    assert needed_definitions(requested(by_name, BLUEPRINT, CONFIG_MAP)) == NeededDefinitions((), ())
    assert needed_definitions(requested(SUCCESSOR)) == NeededDefinitions((), ())
    assert needed_definitions(requested(SUCCESSOR), BEFORE) == NeededDefinitions(("stack-backup",), ())
    assert needed_definitions(requested(SUCCESSOR, BLUEPRINT), BEFORE) == NeededDefinitions((), ())
    other = successor(blueprint="other", configMaps={"names": {"name": "stacks"}})
    assert needed_definitions(requested(other), BEFORE) == NeededDefinitions(("other",), ("stacks",))


@pytest.mark.parametrize(
    ("documents", "is_pinned", "problem"),
    [
        ([], False, "definitions: has no action sets; give one, with what it uses"),
        ([BLUEPRINT, 5], False, "definitions: has no action sets"),
        ([ACTION_SET, changed(ACTION_SET, "metadata.name", "x")], False, "definitions: has 2 action sets"),
        ([ACTION_SET, *[CONFIG_MAP] * 100], False, "definitions: has 101 entries; give at most 100"),
        ([ACTION_SET], True, "pinned: the action set has no from, so there is no blueprint of a predecessor"),
    ],
)
def test_a_request_that_is_no_request_to_run_actions(documents: list[Any], is_pinned: bool, problem: str) -> None:
    with pytest.raises(RequestInvalid, match=f"^{re.escape(problem)}"):
        read_request(documents, LATER_FUNCTIONS, is_pinned)


def test_violations_of_the_definitions_come_first_and_all_at_once() -> None:
    wrong = changed(changed(ACTION_SET, "spec.wait", "1x"), "spec.actions[1].blueprint", 5)
    answer = read_request([changed(BLUEPRINT, "spec.actions.backup.phases[1].func", "KubeTask"), wrong], FUNCTIONS)
    assert isinstance(answer, tuple)
    first, *_, last = answer
    assert (first.kind, first.path) == ("Blueprint", "root[0].spec.actions.backup.phases[0].func")
    assert (last.kind, last.path, last.code, last.severity) == (
        "ActionSet", "root[1].spec.wait", "duration-invalid", Severity.ERROR,
    )  # fmt: skip
    assert not last.location.source


@pytest.mark.parametrize(
    ("change", "stored", "expected"),
    [
        (("spec.actions[0].blueprint", "stack-bakcup"), STORED,
         ['root[0].spec.actions[0].blueprint: there is no blueprint "stack-bakcup", neither in the request nor stored; '
          'did you mean "stack-backup"?']),
        (("spec.actions[0].blueprint", "other"), StoredDefinitions({**STORED.blueprints, "others": None}, {}),
         ['root[0].spec.actions[0].blueprint: there is no blueprint "other", neither in the request nor stored; '
          'did you mean "others"?']),
        (("spec.actions[0].name", "backups"), STORED,
         ['root[0].spec.actions[0].name: blueprint "stack-backup" has no action "backups"; did you mean "backup"?']),
        (("spec.actions[0].options.tga", "x"), STORED,
         ['root[0].spec.actions[0].options.tga: the action declares no option "tga"; it declares tag, mode']),
        (("spec.actions[1].configMaps.names", {"name": "naems"}), STORED,
         ['root[0].spec.actions[1].configMaps.names.name: there is no config map "naems", neither in the request nor '
          'stored; did you mean "names"?']),
        (("spec.actions[1].configMaps.names", {"name": "x"}), StoredDefinitions({"stack-backup": BLUEPRINT}, {}),
         ['root[0].spec.actions[1].configMaps.names.name: there is no config map "x", neither in the request nor '
          'stored; there are no config maps']),
        (("spec.wait", "1h"), StoredDefinitions({"stack-backup": None}, {}),
         [f'root[0].spec.actions[{place}].blueprint: stored blueprint "stack-backup" cannot run here: it was deleted '
          'or is no blueprint' for place in (0, 1)]),
    ],
)  # fmt: skip
def test_what_is_not_there_is_a_violation(
    change: tuple[str, Any], stored: StoredDefinitions, expected: list[str]
) -> None:
    assert problems(changed(ACTION_SET, *change), stored=stored) == expected


def test_a_stored_blueprint_whose_function_is_not_there() -> None:
    for table in (FUNCTIONS, SignatureTable([])):
        answer = resolve(requested(ACTION_SET), STORED, None, table, TIME, SUFFIX)
        assert isinstance(answer, tuple)
        assert [each.path for each in answer] == [f"root[0].spec.actions[{place}].blueprint" for place in (0, 1)]
        reason = (
            'stored blueprint "stack-backup" cannot run here: spec.actions.backup.phases[0].func: there is no function'
        )
        assert answer[0].reason.startswith(reason)
        assert answer[0].code == "function-not-found"


def test_a_function_of_a_function_server_is_not_there() -> None:
    phase = {"name": "scan", "func": "acme/Scan"}
    scan = changed(BLUEPRINT, "spec.actions.backup.phases[3]", phase)
    assert problems(ACTION_SET, scan) == [
        'root[0].spec.actions[0].name: phase "scan" of blueprint "stack-backup" calls acme/Scan, which is not there; '
        f"functions: {', '.join(LATER_FUNCTIONS.names)} (pkger functions)"
    ]
    others = changed(BLUEPRINT, "spec.actions.dump.phases[3]", phase)
    assert pinned(ACTION_SET, others).name == "nightly"


def test_a_pinned_action_set_is_bounded() -> None:
    texts = {f"k{number}": "x" * 16_000 for number in range(14)}
    [run] = changed(ACTION_SET, "spec.actions", [ACTION_SET["spec"]["actions"][1]])["spec"]["actions"]
    by_name = changed(changed(run, "configMaps.names", {"name": "names"}), "secrets", {"slack": {"k": {"env": "X"}}})
    large = changed(CONFIG_MAP, "spec.data", {"stack": "prod", **texts})
    few = changed(ACTION_SET, "spec.actions", [by_name] * 18)
    assert len(pinned_text(pinned(few, large)).encode()) < LARGEST_PINNED
    [problem] = problems(changed(ACTION_SET, "spec.actions", [by_name] * 19), large)
    assert re.fullmatch(
        r"root\[0\].spec: the action set has 4,2..,... bytes with all that it uses; at most 4,194,304 are accepted",
        problem,
    )


def test_a_successor_takes_what_its_action_declares() -> None:
    answer = pinned(SUCCESSOR, earlier=EARLIER)
    assert (answer.name, answer.predecessor) == ("restore-nightly-x7k2p", "nightly")
    assert answer.actions == (
        PinnedAction(
            "restore",
            "stack-backup",
            answer.blueprints["stack-backup"]["restore"],
            PROD,
            {"reason": "again"},
            {"stackBackup": {"snapshot": SNAPSHOT}},
            {"names": {"stack": "prod"}},
            {"slack": {"token": TOKEN}},
        ),
    )
    assert read_pinned(pinned_text(answer)) == answer


def test_options_of_the_predecessor_are_kept_and_other_overrides_replace() -> None:
    kept = pinned(changed(SUCCESSOR, "spec.overrides", REMOVED), earlier=EARLIER)
    assert kept.actions[0].options == {"reason": "from before"}
    answer = pinned(
        successor(
            object={"kind": "Stack", "name": "copy"},
            artifacts={"stackBackup": {"keyValue": {"snapshot": "other"}}},
            configMaps={"names": {"name": "names"}},
            secrets={"slack": {"token": {"given": True}}},
        ),
        earlier=EARLIER,
    )
    [action] = answer.actions
    assert action.object == ActionObject(STACK, "copy", platform="embedded", org="default")
    assert action.artifacts == {"stackBackup": {"snapshot": "other"}}
    assert action.config_maps == {"names": {"stack": "prod"}}
    assert action.secrets == {"slack": {"token": SecretSource(SecretPlace.REQUEST)}}
    assert action.options == {"reason": "again"}


def test_a_successor_has_an_action_for_each_of_its_predecessor() -> None:
    [action] = BEFORE.actions
    edge = replace(PROD, name="edge")
    two = replace(BEFORE, actions=(action, replace(action, object=edge)))
    answer = pinned(SUCCESSOR, earlier=replace(EARLIER, pinned=two))
    assert [(each.object, each.artifacts["stackBackup"]["snapshot"]) for each in answer.actions] == [
        (PROD, SNAPSHOT),
        (edge, "z"),
    ]


SHORTER = changed(BLUEPRINT, "spec.actions.restore.phases[1]", REMOVED)


def test_a_successor_runs_the_blueprint_of_today_unless_it_is_pinned_or_gone() -> None:
    stored = StoredDefinitions({"stack-backup": SHORTER}, {})
    today = pinned(SUCCESSOR, earlier=EARLIER, stored=stored)
    assert versions(today.actions[0]) == [1]
    assert versions(pinned(SUCCESSOR, SHORTER, earlier=EARLIER).actions[0]) == [1]
    assert versions(pinned(SUCCESSOR, earlier=EARLIER, stored=stored, is_pinned=True).actions[0]) == [1, 1]
    assert versions(pinned(SUCCESSOR, earlier=EARLIER, stored=NOTHING).actions[0]) == [1, 1]


def test_an_unchanged_blueprint_is_the_same_pinned_or_not() -> None:
    first = pinned(ACTION_SET)
    earlier = EarlierActionSet(first, ActionSetState.COMPLETE, {(place, "stackBackup"): {"k": "v"} for place in (0, 1)})
    request = successor(configMaps={"names": {"data": {}}}, secrets={"slack": {"token": {"env": "X"}}})
    digests = {
        (each.digest, pinned_text(answer))
        for is_pinned, stored in ((True, STORED), (False, STORED), (False, NOTHING))
        for answer in [pinned(request, earlier=earlier, is_pinned=is_pinned, stored=stored)]
        for each in answer.actions
    }
    assert len(digests) == 1


def test_another_blueprint_runs_if_the_overrides_name_it() -> None:
    other = changed(SHORTER, "metadata.name", "other")
    request = successor(blueprint="other")
    answer = pinned(request, earlier=EARLIER, stored=StoredDefinitions({"other": other}, {}))
    assert (answer.actions[0].blueprint, versions(answer.actions[0])) == ("other", [1])
    assert problems(request, earlier=EARLIER, stored=StoredDefinitions({"other": other}, {}), is_pinned=True) == [
        "root[0].spec.overrides.blueprint: does not go with pinned, which runs the blueprint of the predecessor; "
        "remove one of them"
    ]
    assert problems(request, earlier=EARLIER) == [
        'root[0].spec.overrides.blueprint: there is no blueprint "other", neither in the request nor stored; '
        "blueprints: stack-backup"
    ]


@pytest.mark.parametrize(
    ("blueprint", "request_document", "expected"),
    [
        (changed(BLUEPRINT, "spec.actions.restore", REMOVED), SUCCESSOR,
         ['root[0].spec.from.action: blueprint "stack-backup" has no action "restore"; actions: backup, dump']),
        (BLUEPRINT, changed(SUCCESSOR, "spec.from.action", "restores"),
         ['root[0].spec.from.action: blueprint "stack-backup" has no action "restores"; did you mean "restore"?']),
        (changed(BLUEPRINT, "spec.actions.restore.inputArtifactNames", ["stackBackup", "more"]), SUCCESSOR,
         ['root[0].spec.overrides.artifacts.more: the action needs artifact "more"']),
        (changed(BLUEPRINT, "spec.actions.restore.secretNames", ["slack", "aws"]), SUCCESSOR,
         ['root[0].spec.overrides.secrets.aws: the action needs secret "aws"']),
        (changed(BLUEPRINT, "spec.actions.restore.options.reason.enum", ["a", "b"]), SUCCESSOR,
         ['root[0].spec.overrides.options.reason: must be one of a, b, found the text "again"']),
        (BLUEPRINT, successor(options={"reason": "x", "tag": "y"}),
         ['root[0].spec.overrides.options.tag: the action declares no option "tag"; it declares reason']),
        (BLUEPRINT, successor(configMaps={"nmaes": {"data": {}}}),
         ['root[0].spec.overrides.configMaps.nmaes: the action declares no config map "nmaes"; did you mean "names"?',
          'root[0].spec.overrides.configMaps.names: the action needs config map "names"']),
        (changed(BLUEPRINT, "spec.actions.restore.kind", "Bucket"), SUCCESSOR,
         ['root[0].spec.overrides.object.kind: must be Bucket, found the text "Stack"']),
        (changed(BLUEPRINT, "spec.actions.restore.phases[0].func", "acme/Scan"), SUCCESSOR,
         ['root[0].spec.from.action: phase "check" of blueprint "stack-backup" calls acme/Scan, which is not there; '
          f"functions: {', '.join(LATER_FUNCTIONS.names)} (pkger functions)"]),
    ],
)  # fmt: skip
def test_what_the_predecessor_lacks_is_a_violation(blueprint: Any, request_document: Any, expected: list[str]) -> None:
    assert (
        problems(request_document, earlier=EARLIER, stored=StoredDefinitions({"stack-backup": blueprint}, {}))
        == expected
    )


def test_an_action_without_an_object_may_need_one_of_its_successor() -> None:
    [action] = BEFORE.actions
    earlier = replace(EARLIER, pinned=replace(BEFORE, actions=(replace(action, object=None),)))
    assert problems(SUCCESSOR, earlier=earlier) == [
        "root[0].spec.overrides.object: the action needs an object of kind Stack"
    ]
    request = successor(object={"kind": "Stack", "name": "copy"})
    assert pinned(request, earlier=earlier).actions[0].object == replace(PROD, name="copy")


def test_an_action_that_needs_no_object_keeps_that_of_its_predecessor() -> None:
    request = changed(changed(SUCCESSOR, "spec.from.action", "dump"), "spec.overrides", REMOVED)
    assert pinned(request, earlier=EARLIER).actions[0].object == PROD


def test_a_version_of_a_function_that_is_gone_is_a_violation() -> None:
    newer = SignatureTable(
        replace(signature, version=2) if signature.name == "RestoreStack" else signature
        for name in LATER_FUNCTIONS.names
        if isinstance(signature := LATER_FUNCTIONS.find(name), Signature)
    )
    first = pinned(ACTION_SET)
    earlier = EarlierActionSet(first, ActionSetState.COMPLETE, {(place, "stackBackup"): {"k": "v"} for place in (0, 1)})
    request = successor(configMaps={"names": {"data": {}}}, secrets={"slack": {"token": {"env": "X"}}})
    assert pinned(request, earlier=earlier, table=newer).actions[0].action.phases[1].version == 2
    [problem] = problems(request, earlier=earlier, table=newer, is_pinned=True)
    assert problem.startswith(
        'root[0].spec.from.action: phase "apply" of blueprint "stack-backup" calls RestoreStack v1, which is not there'
    )


@pytest.mark.parametrize("state", [each for each in ActionSetState if each is not ActionSetState.COMPLETE])
def test_nothing_is_made_of_an_action_set_that_is_not_complete(state: ActionSetState) -> None:
    problem = f"nightly is not complete ({state.lower()}); nothing can be made from it"
    with pytest.raises(ActionSetNotComplete, match=re.escape(problem)):
        resolved(SUCCESSOR, earlier=replace(EARLIER, state=state))


@pytest.mark.parametrize(("document", "earlier"), [(SUCCESSOR, None), (ACTION_SET, EARLIER)])
def test_a_predecessor_goes_with_an_action_set_that_names_one(document: Any, earlier: EarlierActionSet | None) -> None:
    with pytest.raises(ValueError, match="a predecessor goes with an action set that names one"):
        resolved(document, earlier=earlier)


@pytest.mark.parametrize(
    ("action", "predecessor", "name"),
    [
        ("restore", "backup-2jj9n", "restore-backup-2jj9n-x7k2p"),
        ("backUp_all", "", "backup-all-x7k2p"),
        ("a", "b" * 63, f"a-{'b' * 55}-x7k2p"),
        ("a_" * 31, "", f"{'a-' * 28}a-x7k2p"),
    ],
)
def test_a_name_is_made_of_the_action_and_the_predecessor(action: str, predecessor: str, name: str) -> None:
    assert made_name(action, predecessor, SUFFIX) == name


@given(
    st.from_regex("[A-Za-z][A-Za-z0-9_]{0,62}", fullmatch=True), st.from_regex("|[a-z0-9-]{0,61}[a-z]", fullmatch=True)
)
def test_a_name_that_is_made_is_a_name(action: str, predecessor: str) -> None:
    name = made_name(action, predecessor, SUFFIX)
    assert is_package_name(name)
    assert name.endswith(f"-{SUFFIX}")


GIVEN = pinned(ACTION_SET)


def test_secrets_of_the_request_are_those_that_its_actions_take() -> None:
    for value in ("x" * 4, "x" * 65_536):
        check_secrets(GIVEN, {"slack.url": value})


@pytest.mark.parametrize(
    ("secrets", "problem"),
    [
        ({}, "the action set takes slack.url from the request; give its value"),
        ({"slack.url": "hide", "slack.token": "hide"},
         'the action set takes no "slack.token" from the request; it takes slack.url'),
        ({"slack.url": "hid"}, "slack.url has 3 characters; 4 to 65,536 are accepted"),
        ({"slack.url": "x" * 65_537}, "slack.url has 65,537 characters; 4 to 65,536 are accepted"),
    ],
)  # fmt: skip
def test_secrets_that_are_refused(secrets: Mapping[str, str], problem: str) -> None:
    with pytest.raises(RequestInvalid, match=f"secrets: {re.escape(problem)}") as caught:
        check_secrets(GIVEN, secrets)
    assert "hid" not in str(caught.value)


def test_an_action_set_that_takes_no_secrets() -> None:
    with pytest.raises(RequestInvalid, match=r'takes no "a\.b" from the request; it takes none'):
        check_secrets(pinned(SUCCESSOR, earlier=EARLIER), {"a.b": "secret"})


def test_an_artifact_is_named_for_its_snapshot() -> None:
    answer = pinned(SUCCESSOR, earlier=EARLIER)
    assert artifact_of(answer, SNAPSHOT) == "stackBackup"
    assert artifact_of(answer, "sha256:other") == ""


def test_equal_requests_have_equal_texts() -> None:
    written = json.loads(json.dumps(ACTION_SET))
    assert pinned_text(pinned(written)) == pinned_text(pinned(ACTION_SET))
