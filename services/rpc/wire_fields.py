"""Counts the fields of an encoded message without decoding it."""

from enum import IntEnum

from google.protobuf.descriptor import Descriptor


class _Type(IntEnum):
    """The types of fields on the wire (https://protobuf.dev/programming-guides/encoding)."""

    VARINT = 0
    EIGHT_BYTES = 1
    LENGTH = 2
    FOUR_BYTES = 5


def has_more_fields(encoded: bytes, descriptor: Descriptor, most: int) -> bool:
    """
    Whether a message has more than *most* fields, with those of nested messages.

    The time it takes grows with *most*, not with the length of texts. Bytes that are no message have no more: whoever
    decodes them refuses them.

    Args:
        encoded: The bytes of the message.
        descriptor: Its type.
        most: The bound.
    """
    count = 0
    # Where the fields of a message begin and end, and its type.
    messages = [(0, len(encoded), descriptor)]
    try:
        while messages:
            at, end, kind = messages.pop()
            while at < end:
                count += 1
                if count > most:
                    return True
                tag, at = _varint(encoded, at)
                match tag & 7:
                    case _Type.VARINT:
                        _, at = _varint(encoded, at)
                    case _Type.EIGHT_BYTES:
                        at += 8
                    case _Type.FOUR_BYTES:
                        at += 4
                    case _Type.LENGTH:
                        length, at = _varint(encoded, at)
                        field = kind.fields_by_number.get(tag >> 3)
                        if field is not None and field.message_type is not None:
                            messages.append((at, at + length, field.message_type))
                        at += length
                    case _:
                        return False
    except IndexError:
        # The bytes end within a field.
        pass
    return False


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    """The number at position *at*, and the position after it."""
    value = shift = 0
    while (byte := encoded[at]) & 0x80:
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
    return value | byte << shift, at + 1
