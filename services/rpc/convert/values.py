"""JSON values as messages."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.struct_pb2 import Value


def put_values(message: Any, values: Mapping[str, Any]) -> None:
    """
    Put JSON values into a map of a message, such as the environment values of a package.

    Raises:
        ValueError: A value cannot be sent; the text names its key.
    """
    for key, value in values.items():
        try:
            if value is None:
                message[key].CopyFrom(Value(null_value=0))  # type: ignore[arg-type]
            else:
                ParseDict(value, message[key])
        except (ParseError, ValueError) as error:
            raise ValueError(f"the environment value {key!r} cannot be sent: {error}") from error
