"""
Messages of ``pkger.model.v1`` as of commit ebdd516, built at run time in a descriptor pool of their own.

``model.binpb`` is their descriptor set: ``protoc --include_imports --descriptor_set_out`` of the protos of that commit.
"""

from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

_PACKAGE = "pkger.model.v1"


def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    files = FileDescriptorSet.FromString(Path(__file__).with_name("model.binpb").read_bytes())
    for file in files.file:
        pool.Add(file)
    return pool


_POOL = _pool()


def _message(name: str) -> Any:
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def _enum(name: str) -> Any:
    return EnumTypeWrapper(_POOL.FindEnumTypeByName(f"{_PACKAGE}.{name}"))


Plan = _message("Plan")
Operation = _message("Operation")
OperationEvent = _message("OperationEvent")

Verb = _enum("Verb")
Undo = _enum("Undo")
Origin = _enum("Origin")
Direction = _enum("Direction")
BlockedReason = _enum("BlockedReason")
