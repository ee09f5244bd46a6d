"""StackService on the wire: it translates and delegates, each call one transaction."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from pkger.model.v1 import plan_pb2
from pkger.stack.v1 import stack_pb2, stack_pb2_grpc

from services.core.model import PlanDiffs
from services.kinds.format.canonical import canonical_text
from services.packages.installed import PackageMove, moves_between
from services.packages.package_text import read_package
from services.rpc import page_tokens
from services.rpc.convert.packages import installed_to_pb
from services.rpc.parts import cut
from services.rpc.plan_parts import REMARKS, checked_view, diffs_parts, inflated, shown_part
from services.rpc.request_digest import content_digest
from services.system import Ids
from stack_svc.messages import fields, watches
from stack_svc.messages import plans as plan_messages
from stack_svc.messages import stacks as stack_messages
from stack_svc.notify import Watchers
from stack_svc.rules import (
    attachments,
    packages,
    plans,
    reservations,
    resource_edits,
    revisions,
    sanitize,
    stacks,
    updates,
    uses,
    watching,
)
from stack_svc.rules.requests import RequestId
from stack_svc.rules.stacks import NewStack
from stack_svc.rules.urls import checked_urls
from stack_svc.store import packages as stored_packages
from stack_svc.store import plans as stored_plans
from stack_svc.store import revisions as stored_revisions
from stack_svc.store import stacks as stored_stacks
from stack_svc.store.drift_checks import DriftCheck
from stack_svc.store.reservations import Reservation
from stack_svc.store.revisions import Revision
from stack_svc.store.stacks import Choice, Stack, StackName
from stack_svc.store.store import ReadTransaction, Store


class StackServicer(stack_pb2_grpc.StackServiceServicer):
    """StackService: requests of users and planners."""

    def __init__(self, store: Store, ids: Ids, allow_jsonnet: bool = False, watchers: Watchers | None = None) -> None:
        self._store = store
        self._ids = ids
        self._allow_jsonnet = allow_jsonnet
        self._watchers = watchers or Watchers()

    async def CreateStack(
        self, request: stack_pb2.CreateStackRequest, context: object
    ) -> stack_pb2.CreateStackResponse:
        """Create an empty stack."""
        named = StackName(fields.new_target_of(request.target), request.name)
        urls = checked_urls(request.urls, "urls", self._allow_jsonnet)
        target = named.target
        policy = stack_messages.policy_of(request.policy)
        content = [target.platform, target.org, named.name, request.description, *urls, canonical_text(policy)]
        key = RequestId(request.request_id, content)
        new = NewStack(self._ids.token(stacks.ID_BYTES), request.description, urls, policy)
        stack = await self._store.write(lambda tx: stacks.create(tx, named, new, key))
        return stack_pb2.CreateStackResponse(stack=stack_messages.stack_to_pb(stack))

    async def UpdateStack(
        self, request: stack_pb2.UpdateStackRequest, context: object
    ) -> stack_pb2.UpdateStackResponse:
        """Update name, description, URLs or policy of a stack."""
        choice = fields.choice_from_pb(request.stack)
        update = stack_messages.update_from_pb(request, self._allow_jsonnet)
        key = RequestId(request.request_id, [content_digest(request)])
        stack = await self._store.write(lambda tx: updates.update(tx, choice, update, key))
        return stack_pb2.UpdateStackResponse(stack=stack_messages.stack_to_pb(stack))

    async def GetStack(self, request: stack_pb2.GetStackRequest, context: object) -> stack_pb2.GetStackResponse:
        """Read one stack."""
        choice = fields.choice_from_pb(request.stack)
        stack, drift_check, reservation = await self._store.read(lambda tx: _whole_stack(tx, choice))
        return stack_pb2.GetStackResponse(stack=stack_messages.stack_to_pb(stack, drift_check, reservation))

    async def ListResources(
        self, request: stack_pb2.ListResourcesRequest, context: object
    ) -> stack_pb2.ListResourcesResponse:
        """Read one page of the inventory of a stack."""
        choice = fields.choice_from_pb(request.stack)
        after = page_tokens.place_of(request.page_token, stacks.FIRST_RESOURCE)
        size = page_tokens.size_of(request.page_size, 1000, 5000)
        inventory = await self._store.read(lambda tx: stacks.resources(tx, choice, after, size))
        record = inventory.stack.record
        page, token = page_tokens.page_of(
            inventory.entries,
            size,
            lambda entry: stack_messages.listed_entry(entry, inventory.without_baseline),
            lambda entry: (record.id, record.generation, *entry.key),
        )
        return stack_pb2.ListResourcesResponse(resources=page, next_page_token=token, generation=record.generation)

    async def ListStacks(self, request: stack_pb2.ListStacksRequest, context: object) -> stack_pb2.ListStacksResponse:
        """Read one page of stacks."""
        stack_filter = stack_messages.stacks_filter_from_pb(request)
        after, size = (
            page_tokens.place_of(request.page_token, stored_stacks.START),
            page_tokens.size_of(request.page_size, 100, 1000),
        )
        listed = await self._store.read(lambda tx: tx.stacks.page(stack_filter, after, size + 1))
        page, token = page_tokens.page_of(
            listed, size, stack_messages.stack_to_pb, lambda stack: (stack.record.name, stack.record.id)
        )
        return stack_pb2.ListStacksResponse(stacks=page, next_page_token=token)

    async def WatchStack(
        self, request: stack_pb2.WatchStackRequest, context: object
    ) -> AsyncIterator[stack_pb2.WatchStackResponse]:
        """Report the record of a stack and the operations on it, until it is removed."""
        position = watches.position_from_pb(request.position)
        stack_id = position.stack
        if not stack_id:
            choice = fields.choice_from_pb(request.stack)
            stack_id = (await self._store.read(lambda tx: watching.watched(tx, choice))).record.id
        with self._watchers.waiting(stack_id) as event:
            while True:
                seen = await self._store.read(partial(watching.snapshot, stack_id=stack_id, position=position))
                record = watches.record_digest(seen)
                for change, position in watching.changes(position, seen, record):  # noqa: B020 - the next round starts there
                    yield watches.change_to_pb(stack_id, change, position, seen)
                if seen.stack is None:
                    return
                await self._watchers.next_change(event)

    async def DeleteStack(
        self, request: stack_pb2.DeleteStackRequest, context: object
    ) -> stack_pb2.DeleteStackResponse:
        """Remove the record of a stack that owns nothing."""
        choice = fields.choice_from_pb(request.stack)
        await self._store.write(lambda tx: stacks.delete(tx, choice))
        return stack_pb2.DeleteStackResponse()

    async def ForgetResource(
        self, request: stack_pb2.ForgetResourceRequest, context: object
    ) -> stack_pb2.ForgetResourceResponse:
        """Forget a resource."""
        choice = fields.choice_from_pb(request.stack)
        key, request_id = fields.checked_key(request.key), RequestId(request.request_id, [content_digest(request)])
        stack = await self._store.write(lambda tx: resource_edits.forget(tx, choice, key, request_id))
        return stack_pb2.ForgetResourceResponse(stack=stack_messages.stack_to_pb(stack))

    async def RenameResource(
        self, request: stack_pb2.RenameResourceRequest, context: object
    ) -> stack_pb2.RenameResourceResponse:
        """Rename an object in the record."""
        choice = fields.choice_from_pb(request.stack)
        key, request_id = fields.checked_key(request.key), RequestId(request.request_id, [content_digest(request)])
        stack = await self._store.write(lambda tx: resource_edits.rename(tx, choice, key, request.new_name, request_id))
        return stack_pb2.RenameResourceResponse(stack=stack_messages.stack_to_pb(stack))

    async def FindOwners(self, request: stack_pb2.FindOwnersRequest, context: object) -> stack_pb2.FindOwnersResponse:
        """Find the stacks that own or use the given resources."""
        target = fields.target_of(request.target)
        resources = [(sanitize.clean(each.kind), sanitize.clean(each.id)) for each in request.resources]
        owned, used, labels = await self._store.read(lambda tx: uses.holdings(tx, target, resources))
        answer = stack_pb2.FindOwnersResponse()
        for field, holders in ((answer.owners, owned), (answer.users, used)):
            for resource, holder in holders:
                field.append(stack_messages.holder_to_pb(resource, holder, labels.get((holder.stack, resource), ())))
        return answer

    async def GetPlan(
        self, request: stack_pb2.GetPlanRequest, context: object
    ) -> AsyncIterator[stack_pb2.GetPlanResponse]:
        """Read one plan, in parts."""
        views = {REMARKS, *checked_view(request.view)}
        plan, header, parts = await self._store.read(lambda tx: plans.parts(tx, request.plan_id, views))
        yield stack_pb2.GetPlanResponse(part=plan_pb2.PlanPart(header=plan_messages.plan_to_pb(plan, header)))
        for each in parts:
            part = plan_pb2.PlanPart.FromString(inflated(each.masked_part or each.part))
            yield stack_pb2.GetPlanResponse(part=part)

    async def ListPackages(
        self, request: stack_pb2.ListPackagesRequest, context: object
    ) -> stack_pb2.ListPackagesResponse:
        """Read one page of the installed packages of a stack."""
        choice = fields.choice_from_pb(request.stack)
        after = page_tokens.place_of(request.page_token, stored_packages.START)
        size = page_tokens.size_of(request.page_size, 100, 1000)
        stack, listed = await self._store.read(lambda tx: packages.page(tx, choice, after, size))
        page, token = page_tokens.page_of(listed, size, installed_to_pb, lambda each: (each.name,))
        return stack_pb2.ListPackagesResponse(packages=page, next_page_token=token, generation=stack.record.generation)

    async def ListRevisions(
        self, request: stack_pb2.ListRevisionsRequest, context: object
    ) -> stack_pb2.ListRevisionsResponse:
        """Read one page of the history of a stack, or of several stacks."""
        size = page_tokens.size_of(request.page_size, 50, 500)
        if request.stack_ids:
            stack_ids = stack_messages.stacks_from_pb(request)
            after = page_tokens.place_of(request.page_token, stored_revisions.START)
            listed = await self._store.read(lambda tx: tx.revisions.page_of_stacks(stack_ids, after, size + 1))
        else:
            choice = fields.choice_from_pb(request.stack)
            (before,) = page_tokens.place_of(request.page_token, (stored_revisions.NEWEST,))
            listed = await self._store.read(lambda tx: _history(tx, choice, before, size + 1))
        page, token = page_tokens.page_of(
            listed,
            size,
            lambda each: stack_messages.revision_to_pb(each[1], each[0]),
            lambda each: (each[0], each[1].number) if request.stack_ids else (each[1].number,),
        )
        return stack_pb2.ListRevisionsResponse(revisions=page, next_page_token=token)

    async def GetRevision(
        self, request: stack_pb2.GetRevisionRequest, context: object
    ) -> AsyncIterator[stack_pb2.GetRevisionResponse]:
        """Read one revision, in parts."""
        choice = fields.choice_from_pb(request.stack)
        [(stack_id, revision, text)] = await self._store.read(lambda tx: _revisions(tx, choice, number=request.number))
        yield stack_pb2.GetRevisionResponse(revision=stack_messages.revision_to_pb(revision, stack_id))
        is_shown = not request.unmasked
        listed, objects = await asyncio.to_thread(
            lambda: stack_messages.revision_parts_to_pb(read_package(text), is_shown)
        )
        for packages_part in cut(listed):
            yield stack_pb2.GetRevisionResponse(packages=packages_part)
        for objects_part in cut(objects):
            yield stack_pb2.GetRevisionResponse(objects=objects_part)

    async def DiffRevisions(
        self, request: stack_pb2.DiffRevisionsRequest, context: object
    ) -> AsyncIterator[stack_pb2.DiffRevisionsResponse]:
        """Compare the packages of two revisions."""
        choice = fields.choice_from_pb(request.stack)
        numbers = {"old": request.old, "new": request.new}
        (_, _, old), (_, _, new) = await self._store.read(lambda tx: _revisions(tx, choice, **numbers))
        listed, moves = await asyncio.to_thread(_differences, old, new)
        if moves:
            yield stack_pb2.DiffRevisionsResponse(packages=map(stack_messages.move_to_pb, moves))
        for part in diffs_parts(listed):
            yield stack_pb2.DiffRevisionsResponse(diffs=shown_part(part).diffs)

    async def ListPlans(self, request: stack_pb2.ListPlansRequest, context: object) -> stack_pb2.ListPlansResponse:
        """Read one page of plans."""
        target = fields.target_of(request.target) if request.HasField("target") else None
        after = page_tokens.place_of(request.page_token, stored_plans.START)
        size = page_tokens.size_of(request.page_size, 50, 500)
        listed = await self._store.read(lambda tx: plans.page(tx, target, request.stack_name, after, size))
        page, token = page_tokens.page_of(
            listed, size, lambda each: plan_messages.plan_to_pb(*each), lambda each: (each[0].create_time, each[0].id)
        )
        return stack_pb2.ListPlansResponse(plans=page, next_page_token=token)

    async def DeletePlan(self, request: stack_pb2.DeletePlanRequest, context: object) -> stack_pb2.DeletePlanResponse:
        """Remove a plan that no operation has run."""
        await self._store.write(lambda tx: plans.delete(tx, sanitize.clean(request.plan_id)))
        return stack_pb2.DeletePlanResponse()


def _differences(old: str, new: str) -> tuple[PlanDiffs, tuple[PackageMove, ...]]:
    """The differences between two packages as they are kept."""
    before, after = read_package(old), read_package(new)
    return revisions.differences(before, after), moves_between(before.packages, after.packages)


def _whole_stack(reading: ReadTransaction, choice: Choice) -> tuple[Stack, DriftCheck | None, Reservation | None]:
    """A stack, its last drift detection, and who has it reserved."""
    stack = stacks.existing(reading, choice)
    return stack, reading.drift_checks.find(stack.record.id), reservations.of_stack(reading, stack)


def _revisions(reading: ReadTransaction, choice: Choice, **numbers: int) -> list[tuple[str, Revision, str]]:
    """Revisions of a stack, with the id of the stack and the text of the package; *numbers* are by request field."""
    stack = stacks.existing(reading, choice)
    listed = [revisions.existing(reading, stack, number, field) for field, number in numbers.items()]
    return [(stack.record.id, each, attachments.text_of(reading, each.package_digest)) for each in listed]


def _history(reading: ReadTransaction, choice: Choice, before: int, most: int) -> list[tuple[str, Revision]]:
    """At most *most* revisions of a stack with numbers below *before*, newest first, each with the id of the stack."""
    stack_id = stacks.existing(reading, choice).record.id
    return [(stack_id, revision) for revision in reading.revisions.page(stack_id, before, most)]
