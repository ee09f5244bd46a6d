"""What the messages of the stack service say in the words of the store."""

import pytest
from google.protobuf.struct_pb2 import Struct, Value

from services.core.errors import RequestInvalid
from stack_svc.messages import policy_from_pb


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_no_policy(number: float) -> None:
    with pytest.raises(RequestInvalid, match="not finite"):
        policy_from_pb(Struct(fields={"history": Value(number_value=number)}))
