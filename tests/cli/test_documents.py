"""Messages as documents: the JSON that ``-o json`` prints."""

from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct
from pkger.stack.v1 import stack_pb2

from services.cli.documents import text_document
from services.rpc.documents import document_of

POLICY = {"history": 5, "protect": True, "overrides": [{"match": {"kind": "*"}, "ignore": ["/a"]}], "share": "always"}


def test_a_policy_is_printed_as_plain_data() -> None:
    stack = stack_pb2.Stack(name="s", policy=ParseDict(POLICY, Struct()))

    document = document_of(stack)

    assert document["policy"] == POLICY
    # A Struct holds floats only; the user wrote 5, not 5.0.
    assert '"policy":{"history":5,"overrides":[' in text_document(document, "json", one_line=True)


def test_a_stack_without_a_policy_has_no_policy_field() -> None:
    assert "policy" not in document_of(stack_pb2.Stack(name="s"))
