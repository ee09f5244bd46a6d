"""Translation of messages of the stack service."""

import pytest
from google.protobuf.struct_pb2 import Struct, Value

from services.core.errors import RequestInvalid
from stack_svc.messages import policy_from_pb


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_policy_with_a_number_that_is_not_finite_is_refused(number: float) -> None:
    with pytest.raises(RequestInvalid, match="not finite"):
        policy_from_pb(Struct(fields={"history": Value(number_value=number)}))
