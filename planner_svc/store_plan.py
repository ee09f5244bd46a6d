"""Stores plans in the stack service: for clients to apply them, and for operations that run them."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.kinds.attachment import compressed
from services.rpc.client import Peer
from services.rpc.parts import pieces
from services.rpc.plan_parts import View
from services.system import Ids

SENT_WITH_PLAN = 64 * 1024
"""Longest attachment that is sent with its plan, in characters: asking whether the store has it takes longer."""


class PlanStore:
    """The plans in the stack service."""

    def __init__(self, stack: Peer, ids: Ids) -> None:
        """*ids* draws the ids of new plans."""
        self._ids = ids
        self._stack = stack
        self._stub = StackServiceStub(stack.channel)
        self._journal = JournalServiceStub(stack.channel)

    async def of_request(self, request: journal_pb2.RequestKey) -> str:
        """
        Id of the plan that an earlier call with this request made; empty if there was none.

        Raises:
            RequestIdReused: The id was used with other content.
        """
        return (await self._stack.call(self._journal.FindPlan, journal_pb2.FindPlanRequest(request=request))).plan_id

    async def keep_for(self, plan: journal_pb2.NewPlan, attachments: Mapping[str, str], operation: str) -> None:
        """
        Store *plan* for an operation, under its id, and complete its header, which is changed in place.

        A plan with nothing to do is not stored: the operation does that at its end.

        Args:
            plan: The plan.
            attachments: Its attachments that the store may lack: texts by their digests.
            operation: Name of the operation.

        Raises:
            OperationNotFound: There is no such operation.
            LeaseLost: It has started or ended.
        """
        plan.header.id = operation
        small = await self._attached(attachments, SENT_WITH_PLAN if not plan.header.no_change else -1)
        if not plan.header.no_change:
            request = journal_pb2.StorePlanRequest(plan=plan, attachments=small, operation_id=operation)
            stored = await self._stack.call(self._journal.StorePlan, request)
            plan.header.create_time.CopyFrom(stored.create_time)
        plan.header.state = plan_pb2.PLAN_STATE_APPLYING
        plan.header.operation_id = operation

    async def keep(
        self, plan: journal_pb2.NewPlan, attachments: Mapping[str, str], request: journal_pb2.RequestKey | None
    ) -> str:
        """
        Store *plan*, and complete its header with id, state and times.

        Args:
            plan: The plan; its header is changed in place.
            attachments: Its attachments that the store may lack: texts by their digests.
            request: The request that the plan is for; None: the request may make any number of plans.

        Returns:
            The id of the plan that an earlier call with the same request stored, and that replaces this one; empty
            when *plan* was stored.

        Raises:
            RequestIdReused: The id was used with other content.
        """
        plan_id = self._ids.token(8)
        plan.header.id = plan_id
        small = await self._attached(attachments, SENT_WITH_PLAN)
        message = journal_pb2.StorePlanRequest(plan=plan, attachments=small, request=request)
        stored = await self._stack.call(self._journal.StorePlan, message)
        plan.header.id = stored.plan_id
        plan.header.state = plan_pb2.PLAN_STATE_PENDING
        plan.header.create_time.CopyFrom(stored.create_time)
        plan.header.expire_time.CopyFrom(stored.expire_time)
        return "" if stored.plan_id == plan_id else stored.plan_id

    async def _attached(self, attachments: Mapping[str, str], most: int) -> list[journal_pb2.Attachment]:
        """Store the attachments of more than *most* characters; returns the others, to be sent with their plan."""
        small = []
        for digest, text in sorted(attachments.items()):
            if len(text) > most:
                await self.attach(digest, text)
            else:
                small.append(journal_pb2.Attachment(digest=digest, body=compressed(text)))
        return small

    async def attach(self, digest: str, text: str) -> None:
        """Store an attachment, a *text* with its *digest*, in parts, unless the store has it."""
        request = journal_pb2.KeepAttachmentRequest(digest=digest)
        if (await self._stack.call(self._journal.KeepAttachment, request)).is_kept:
            return
        texts = list(pieces(text)) or [""]
        for number, part in enumerate(texts):
            body = await asyncio.to_thread(compressed, part)
            message = journal_pb2.StoreAttachmentRequest(digest=digest, body=body, number=number, count=len(texts))
            await self._stack.call(self._journal.StoreAttachment, message)

    async def parts(self, plan_id: str, view: Collection[View]) -> AsyncIterator[plan_pb2.PlanPart]:
        """
        A stored plan.

        Raises:
            PlanNotFound: It is gone.
        """
        request = stack_pb2.GetPlanRequest(plan_id=plan_id, view=view)
        async for answer in self._stack.stream(self._stub.GetPlan, request):
            yield answer.part
