"""The parts of streams."""

from typing import AnyStr

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pkger.model.v1 import plan_pb2

from services.rpc.parts import MAX_PART_BYTES, cut, pieces

LENGTHS = st.lists(st.sampled_from([1, 1_000, 200_000, 900_000]), max_size=12)


def remarks(texts: list[int], conflicts: list[int]) -> plan_pb2.PlanRemarks:
    return plan_pb2.PlanRemarks(
        warnings=["é" * (length // 4) for length in texts],
        conflicts=[plan_pb2.Conflict(message="m" * length) for length in conflicts],
    )


@given(LENGTHS, LENGTHS)
def test_a_message_of_lists_is_cut_and_joins_again(texts: list[int], conflicts: list[int]) -> None:
    whole, joined = remarks(texts, conflicts), plan_pb2.PlanRemarks()
    for part in cut(whole):
        assert 0 < part.ByteSize() <= MAX_PART_BYTES
        joined.MergeFrom(part)
    assert joined == whole


def test_items_of_nearly_no_size_are_cut_as_well() -> None:
    for part in cut(plan_pb2.PlanRemarks(warnings=[""] * 1_000_000)):
        assert part.ByteSize() <= MAX_PART_BYTES


@pytest.mark.parametrize("text", ["a" * 2_000_000, "\N{GRINNING FACE}" * 600_000, b"\xff" * 2_000_000, ""])
def test_a_long_text_is_cut_and_joins_again(text: AnyStr) -> None:
    cuts = list(pieces(text))
    assert type(text)().join(cuts) == text
    assert all(len(piece if isinstance(piece, bytes) else piece.encode()) <= MAX_PART_BYTES for piece in cuts)
