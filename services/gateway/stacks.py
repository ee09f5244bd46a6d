"""``/api/v2/stacks``: creates, reads, updates, uninstalls and deletes stacks."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import PkgerError, RequestInvalid, ResourceNotFound, StackNotFound
from services.gateway.answers import Answer, Code, json_answer
from services.gateway.documents.stack import stack_document
from services.gateway.errors import Problem
from services.gateway.http_request import HttpRequest
from services.gateway.ids import hex_id, id_of
from services.gateway.organizations import Organization, Organizations
from services.gateway.progress import run_to_end
from services.gateway.requests.stacks import Addition, Update, read_creation, read_listing, read_org, read_update
from services.gateway.resource_ids import READ_AT_ONCE, native_ids
from services.gateway.run_plan import Runner
from services.gateway.services import Services
from services.gateway.stack_reading import StackReader
from services.kinds.registry import KINDS, family_of, kinds_meant
from services.rpc.convert.objects import target_to_pb


class StackRoutes:
    """The handlers."""

    def __init__(self, services: Services, orgs: Organizations, reader: StackReader, runner: Runner) -> None:
        self._services, self._orgs, self._reader, self._runner = services, orgs, reader, runner
        self._stub = StackServiceStub(services.stack.channel)

    async def listing(self, request: HttpRequest) -> Answer:
        """List stacks of an organization, sorted by id; if the query names only ids, in its order."""
        listing = read_listing(request.query)
        org = await self._orgs.of_id(listing.org_id)
        stacks = await self._reader.listed(org.target, listing.ids, listing.names)
        places = {stack_id: place for place, stack_id in enumerate(listing.ids)} if not listing.names else {}
        stacks.sort(key=lambda stack: (places.get(stack.id, 0), stack.id))
        return json_answer({"stacks": await self._documents(stacks, org)})

    async def create(self, request: HttpRequest) -> Answer:
        """Create a stack."""
        creation = read_creation(await request.body())
        org = await self._orgs.of_id(creation.org_id)
        message = stack_pb2.CreateStackRequest(
            target=target_to_pb(org.target), name=creation.name, description=creation.description, urls=creation.urls
        )
        stack = (await self._services.stack.call(self._stub.CreateStack, message)).stack
        return json_answer(await self._document(stack, org), 201)

    async def read(self, request: HttpRequest) -> Answer:
        """Read one stack."""
        stack, org = await self._reader.stack(id_of(request.parameters["stackID"], "stackID"))
        return json_answer(await self._document(stack, org))

    async def update(self, request: HttpRequest) -> Answer:
        """Change name, description and URLs of a stack, and import resources; on an error, nothing is changed."""
        stack_id = id_of(request.parameters["stackID"], "stackID")
        update = read_update(await request.body())
        stack, org = await self._reader.stack(stack_id)
        ref = object_pb2.StackRef(id=stack_id)
        imported: list[object_pb2.ObjectKey] = []
        try:
            for addition in await self._new_additions(stack, update.additions):
                imported.append(await self._import(ref, addition, org))
            updated = await self._services.stack.call(self._stub.UpdateStack, _update_request(ref, stack, update))
        except (PkgerError, Problem):
            for key in imported:
                forget = stack_pb2.ForgetResourceRequest(stack=ref, key=key)
                await self._services.stack.call(self._stub.ForgetResource, forget)
            raise
        return json_answer(await self._document(updated.stack, org))

    async def delete(self, request: HttpRequest) -> Answer:
        """Delete all resources that a stack created, and the stack; succeeds if there is no such stack."""
        stack_id, org_id = id_of(request.parameters["stackID"], "stackID"), read_org(request.query)
        try:
            await self._of_org(stack_id, org_id)
        except StackNotFound:
            return Answer(204)
        await self._uninstall(stack_id, plan_pb2.AFTER_UNINSTALL_DELETE, request.principal)
        return Answer(204)

    async def uninstall(self, request: HttpRequest) -> Answer:
        """Delete all resources that a stack created, and keep its record."""
        stack_id, org_id = id_of(request.parameters["stackID"], "stackID"), read_org(request.query)
        await self._of_org(stack_id, org_id)
        await self._uninstall(stack_id, plan_pb2.AFTER_UNINSTALL_KEEP, request.principal)
        stack, org = await self._reader.stack(stack_id)
        return json_answer(await self._document(stack, org))

    async def _of_org(self, stack_id: str, org_id: str) -> None:
        """
        Check that a stack exists, and that it is of an organization, if *org_id* is not empty.

        Raises:
            StackNotFound: There is no such stack.
            Problem: It is of another organization.
        """
        _, org = await self._reader.stack(stack_id)
        if org_id not in ("", org.id):
            raise other_org(stack_id, org)

    async def _uninstall(self, stack_id: str, after_uninstall: plan_pb2.AfterUninstall.ValueType, author: str) -> None:
        applier = self._services.applier
        stub = ApplierServiceStub(applier.channel)
        request = applier_pb2.UninstallStackRequest(
            stack=object_pb2.StackRef(id=stack_id),
            after_uninstall=after_uninstall,
            run_options=applier_pb2.RunOptions(author=author),
            request_id=self._runner.new_request_id(),
        )
        run = await run_to_end(applier, lambda: applier.stream(stub.UninstallStack, request, seconds=math.inf))
        if run.operation and not run.is_done:
            raise await self._runner.failure(run)

    async def _new_additions(self, stack: stack_pb2.Stack, additions: Sequence[Addition]) -> list[Addition]:
        """The additions that are not in the stack yet; a name that the stack uses already is left out."""
        if not additions:
            return []
        _, entries = await self._reader.record(stack)
        there = {(entry.key.kind, each) for entry in entries for each in (entry.resource_id, hex_id(entry.resource_id))}
        names = {(family_of(entry.key.kind), entry.key.name) for entry in entries}
        return [
            replace(each, name="") if (family_of(kinds_meant(each.kind)[0]), each.name) in names else each
            for each in additions
            if not any((kind, each.resource_id) in there for kind in kinds_meant(each.kind))
        ]

    async def _import(self, ref: object_pb2.StackRef, addition: Addition, org: Organization) -> object_pb2.ObjectKey:
        """
        Import a resource into a stack.

        Returns:
            The key of its object.

        Raises:
            Problem: There is no such resource, or the request is invalid; another id or name may work.
            PkgerError: The resource cannot be imported for another reason.
        """
        applier = self._services.applier
        stub = ApplierServiceStub(applier.channel)
        resource = applier_pb2.ResourceImport(kind=addition.kind, id=addition.resource_id, name=addition.name)
        request = applier_pb2.ImportResourcesRequest(stack=ref, resources=[resource])
        try:
            [answer] = [each async for each in applier.stream(stub.ImportResources, request)]
            return answer.entries[0].key
        except (ResourceNotFound, RequestInvalid) as error:
            if isinstance(error, ResourceNotFound):
                # The id of the platform is no key of the map, so that this recursion ends.
                if native_id := (await native_ids(self._reader, [org])).get(addition.resource_id):
                    return await self._import(ref, replace(addition, resource_id=native_id), org)
                id_of(addition.resource_id, "additionalResources[].resourceID")
            raise Problem(
                Code.UNPROCESSABLE_ENTITY, f"additionalResources: {error}", reason=error.reason, metadata=error.metadata
            ) from error

    async def _documents(self, stacks: Sequence[stack_pb2.Stack], org: Organization) -> "list[dict[str, Any]]":
        histories = await self._reader.revisions([stack.id for stack in stacks])
        places = asyncio.Semaphore(READ_AT_ONCE)

        async def document(stack: stack_pb2.Stack) -> dict[str, Any] | None:
            async with places:
                try:
                    return await self._document_of(stack, histories[stack.id], org)
                except StackNotFound:
                    # It was deleted while the others were read.
                    return None

        return [each for each in await asyncio.gather(*map(document, stacks)) if each is not None]

    async def _document(self, stack: stack_pb2.Stack, org: Organization) -> dict[str, Any]:
        histories = await self._reader.revisions([stack.id])
        return await self._document_of(stack, histories[stack.id], org)

    async def _document_of(
        self, stack: stack_pb2.Stack, revisions: Sequence[stack_pb2.Revision], org: Organization
    ) -> dict[str, Any]:
        stack, resources = await self._reader.record(stack)
        # The record of a stack has no references between objects; its package has.
        objects = await self._reader.referring(stack) if any(KINDS[entry.key.kind].uses for entry in resources) else []
        return stack_document(stack, resources, revisions, objects, org.id)


def other_org(stack_id: str, org: Organization) -> Problem:
    """The error for a stack that is of another organization than the request names."""
    return Problem(Code.CONFLICT, f"stack {stack_id} is of organization {org.name} ({org.id}); send that id as orgID")


def _update_request(ref: object_pb2.StackRef, stack: stack_pb2.Stack, update: Update) -> stack_pb2.UpdateStackRequest:
    request = stack_pb2.UpdateStackRequest(stack=ref, name=update.name, description=update.description)
    if update.urls is not None or update.more_urls:
        urls = list(stack.urls) if update.urls is None else list(update.urls)
        request.urls.urls.extend(dict.fromkeys([*urls, *update.more_urls]))
        request.urls.SetInParent()
    return request
