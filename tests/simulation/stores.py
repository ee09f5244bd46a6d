"""The stack service of a scenario in which it refuses to record the success of an operation."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import grpc
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2

from services.core.errors import Owned, ResourceOwned
from services.rpc.dispatcher import Dispatcher, Handler, Register
from services.system import Clock, Ids

_METHOD = "FinishOperation"


class RefusingDispatcher(Dispatcher):
    """Ends a request to record a success with ``RESOURCE_OWNED`` if *refuses* says so of its operation."""

    def __init__(self, register: Collection[Register], clock: Clock, ids: Ids, refuses: Callable[[str], bool]) -> None:
        self._refuses = refuses
        super().__init__(register, clock, ids)

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """As of the base class."""
        changed = {name: self._refusing(each) if name == _METHOD else each for name, each in handlers.items()}
        super().add_registered_method_handlers(service, changed)

    def _refusing(self, handler: Handler) -> Handler:
        behaviour: Any = handler

        async def finish(request: journal_pb2.FinishOperationRequest, call: Any) -> Any:
            is_success = request.state == operation_pb2.OPERATION_STATE_SUCCEEDED
            if is_success and self._refuses(request.operation_id):
                raise ResourceOwned([Owned("Label", "red", "the record", "", "another stack", "")])
            return await behaviour.unary_unary(request, call)

        return grpc.unary_unary_rpc_method_handler(
            finish, behaviour.request_deserializer, behaviour.response_serializer
        )
