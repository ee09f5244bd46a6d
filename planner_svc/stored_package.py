"""A package that the store has, as a revision or as a snapshot: a plan of it is made without parsing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.model import Key
from services.packages.installed import InstalledPackage
from services.packages.package_text import Declaration, KeptPackage
from services.rpc.client import Peer
from services.rpc.convert.objects import key_from_pb, object_from_pb
from services.rpc.convert.packages import declarations_from_pb, installed_from_pb


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """
    The package of a revision or of a snapshot.

    Attributes:
        sources: Names of its sources.
        objects: Its objects.
        untouched: Keys that it leaves as they are; some of *objects* have such a key.
        has_package: False for a revision without a package.
        packages: The installed packages, by name; empty: the stack had none.
        declarations: The declarations of objects that several packages declare.
        lifecycles: The Lifecycle documents, as ``Package`` has them.
    """

    sources: Sequence[str]
    objects: list[object_pb2.Object]
    untouched: frozenset[Key]
    has_package: bool
    packages: tuple[InstalledPackage, ...] = ()
    declarations: Mapping[Key, tuple[Declaration, ...]] = field(default_factory=dict)
    lifecycles: Mapping[str, str] = field(default_factory=dict)

    def kept(self) -> KeptPackage:
        """The package as the store has it."""
        return KeptPackage(
            tuple(map(object_from_pb, self.objects)), self.untouched, self.packages, self.declarations, self.lifecycles
        )


NOT_STORED = StoredPackage((), [], frozenset(), has_package=False)
"""The stored package of a plan of sources, or of an uninstall."""


async def read_revision(service: Peer, stack: object_pb2.StackRef, number: int) -> StoredPackage:
    """
    Read the package of a revision.

    Args:
        service: The stack service.
        stack: The stack.
        number: The revision.

    Raises:
        RevisionNotFound: The stack has no such revision.
        StackNotFound: There is no such stack.
    """
    request = stack_pb2.GetRevisionRequest(stack=stack, number=number, unmasked=True)
    header, objects = stack_pb2.Revision(), stack_pb2.RevisionObjects()
    packages: list[InstalledPackage] = []
    async for answer in service.stream(StackServiceStub(service.channel).GetRevision, request):
        header.MergeFrom(answer.revision)
        objects.MergeFrom(answer.objects)
        packages += map(installed_from_pb, answer.packages.packages)
    return StoredPackage(
        header.sources,
        list(objects.objects),
        frozenset(map(key_from_pb, objects.untouched)),
        bool(header.package_digest),
        tuple(packages),
        {key_from_pb(each.key): declarations_from_pb(each) for each in objects.shared},
        {each.package: each.document_json for each in objects.lifecycles},
    )
