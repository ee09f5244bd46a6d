"""Random action sets as they run."""

import string

from hypothesis import strategies as st

from services.actions.definitions import (
    NO_OBJECT,
    STACK,
    Action,
    ActionObject,
    Option,
    Phase,
    Retry,
    SecretPlace,
    SecretSource,
)
from services.actions.durations import DAY
from services.actions.pinned import PinnedAction, PinnedActionSet
from tests.strategies import json_values, words

names = st.text(string.ascii_letters, min_size=1, max_size=8)
lengths = st.integers(0, DAY)
texts_by_name = st.dictionaries(names, words, max_size=2)
texts_by_name_and_key = st.dictionaries(names, texts_by_name, max_size=2)

phases = st.builds(
    Phase,
    names,
    names,
    version=st.none() | st.integers(1, 9),
    arguments=st.dictionaries(names, json_values, max_size=3),
    condition=words | st.just(""),
    timeout=st.none() | lengths,
    retry=st.none() | st.builds(Retry, st.integers(1, 20), lengths, lengths),
    idempotent=st.booleans(),
)

actions = st.builds(
    Action,
    st.lists(phases, min_size=1, max_size=3).map(tuple),
    description=st.just("") | words,
    kind=st.sampled_from([STACK, "Bucket", NO_OBJECT]),
    lock=st.none() | st.booleans(),
    options=st.dictionaries(
        names,
        st.builds(Option, words, st.none() | words, st.booleans(), st.lists(words, max_size=2).map(tuple)),
        max_size=2,
    ),
    config_map_names=st.lists(names, max_size=2).map(tuple),
    secret_names=st.lists(names, max_size=2).map(tuple),
    input_artifact_names=st.lists(names, max_size=2).map(tuple),
    output_artifacts=texts_by_name_and_key,
    defer_phase=st.none() | phases,
    timeout=st.none() | lengths,
)

objects = st.builds(ActionObject, st.sampled_from([STACK, "Bucket"]), words, words, words, words)

pinned_actions = st.builds(
    PinnedAction,
    names,
    names,
    actions,
    st.none() | objects,
    texts_by_name,
    texts_by_name_and_key,
    texts_by_name_and_key,
    st.dictionaries(
        names,
        st.dictionaries(names, st.builds(SecretSource, st.sampled_from(SecretPlace), words), max_size=2),
        max_size=2,
    ),
)

pinned_action_sets = st.builds(
    PinnedActionSet,
    names,
    words,
    st.lists(pinned_actions, min_size=1, max_size=3).map(tuple),
    st.booleans(),
    st.none() | lengths,
    lengths,
    st.none() | lengths,
    st.just("") | names,
    texts_by_name,
    st.dictionaries(names, st.dictionaries(names, actions, max_size=2), max_size=2),
)
