"""Action sets and the records of their journals as messages: values are unchanged after both conversions."""

import string
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from pkger.journal.v1 import action_set_pb2
from pkger.model.v1 import action_pb2

from services.actions.definitions import NO_OBJECT, STACK, Action, ActionObject, Phase
from services.actions.folding import ArtifactRecord, PhaseKey, PhaseRecord, Records, Stop
from services.actions.life import ActionSetState, PhaseState, StopReason
from services.actions.phase_reason import PhaseReason
from services.actions.pinned import PinnedAction, PinnedActionSet, read_pinned
from services.actions.signatures import FUNCTIONS
from services.rpc.convert.action_sets import new_action_set
from services.rpc.convert.phases import records_from_pb, records_to_pb
from tests.strategies import json_values, words

names = st.text(string.ascii_letters, min_size=1, max_size=8)
counts = st.integers(0, 2**31 - 1)

phase_records = st.builds(
    PhaseRecord,
    st.builds(PhaseKey, counts, st.integers(-1, 63)),
    st.sampled_from(PhaseState),
    counts,
    counts,
    st.booleans(),
    st.dictionaries(names, json_values, max_size=2),
    st.none() | st.sampled_from(PhaseReason),
    st.just("") | words,
    st.just("") | words,
    st.integers(0, 100),
)
artifacts = st.builds(ArtifactRecord, counts, names, st.dictionaries(names, words, max_size=2))
records = st.builds(
    Records,
    st.lists(phase_records, max_size=2).map(tuple),
    st.lists(artifacts, max_size=2).map(tuple),
    st.none() | st.builds(Stop, st.sampled_from(StopReason), words),
    st.booleans(),
)


@given(records, st.integers(0, 2**50))
def test_records_of_phases_are_unchanged(value: Records, time: int) -> None:
    message = action_set_pb2.ActionRecords.FromString(records_to_pb(value).SerializeToString())
    message.write_time.FromMicroseconds(time)
    assert records_from_pb(message) == (value, time)


def test_a_record_without_a_time_is_of_the_epoch() -> None:
    assert records_from_pb(action_set_pb2.ActionRecords()) == (Records(), Timestamp().ToMicroseconds())


@pytest.mark.parametrize(
    ("enum", "twin", "prefix"),
    [
        (PhaseState, action_pb2.PhaseState, "PHASE_STATE"),
        (PhaseReason, action_pb2.PhaseReason, "PHASE_REASON"),
        (ActionSetState, action_pb2.ActionSetState, "ACTION_SET_STATE"),
        (StopReason, action_set_pb2.StopReason, "STOP_REASON"),
    ],
)
def test_states_and_reasons_are_those_of_the_contracts(enum: Any, twin: Any, prefix: str) -> None:
    assert [f"{prefix}_UNSPECIFIED", *(f"{prefix}_{member}" for member in enum)] == twin.keys()


def test_a_new_action_set_says_what_the_store_has_to_know() -> None:
    export, restore = Phase("export", "ExportStack", 1), Phase("restore", "RestoreStack", 1)
    snapshot = "sha256:" + "ab" * 32
    inputs = {"stackBackup": {"snapshot": snapshot, "tag": "night"}}
    edge = ActionObject("Bucket", "raw", "edge", "embedded", "factory")
    pinned = PinnedActionSet(
        "nightly",
        "2026-11-22T10:05:09Z",
        (
            PinnedAction("backup", "tools", Action((export, export), defer_phase=export), ActionObject(STACK, "prod")),
            PinnedAction("restore", "others", Action((restore,)), edge, artifacts=inputs),
            PinnedAction("drop", "tools", Action((export,), kind=NO_OBJECT), artifacts=inputs),
        ),
        ttl=90_500,
        predecessor="before",
        labels={"why": "test"},
    )
    message = new_action_set(pinned, FUNCTIONS)
    assert read_pinned(message.pinned_json) == pinned
    document = MessageToDict(message, preserving_proto_field_name=True)
    document.pop("pinned_json")
    assert document == {
        "name": "nightly",
        "predecessor": "before",
        "blueprints": ["others", "tools"],
        "objects": [
            {"kind": "Stack", "name": "prod", "target": {}},
            {"kind": "Bucket", "name": "raw", "stack": "edge", "target": {"platform": "embedded", "org": "factory"}},
        ],
        "labels": {"why": "test"},
        "ttl": "90.500s",
        "phase_count": 4,
        "reserved": [{"name": "edge", "target": {"platform": "embedded", "org": "factory"}}],
        "snapshots": [snapshot],
    }
