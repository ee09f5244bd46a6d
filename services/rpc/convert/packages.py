"""Installed packages to messages and back."""

from collections.abc import Iterable

from pkger.model.v1 import manifest_pb2, package_change_pb2
from pkger.stack.v1 import stack_pb2

from services.core.model import LABEL, Key
from services.packages.installed import InstalledPackage, PackageOrigin, versions_in
from services.packages.manifest import Requirement
from services.packages.package_text import Declaration
from services.packages.ranges import Range
from services.packages.versions import Version
from services.rpc.convert.enums import Numbers
from services.rpc.convert.manifests import requirement_to_pb
from services.rpc.convert.objects import key_to_pb

ORIGIN = Numbers(PackageOrigin, package_change_pb2.PackageOrigin, "PACKAGE_ORIGIN")


def installed_to_pb(package: InstalledPackage) -> package_change_pb2.InstalledPackage:
    """Translate an installed package."""
    return package_change_pb2.InstalledPackage(
        name=package.name,
        version=package.version.text,
        repository=package.repository or "",
        digest=package.digest,
        content_digest=package.content_digest,
        origin=ORIGIN.number(package.origin),
        requested_range="" if package.requested is None else str(package.requested),
        pinned=package.is_pinned,
        suspended=package.is_suspended,
        requires=map(requirement_to_pb, package.requires),
    )


def installed_from_pb(message: package_change_pb2.InstalledPackage) -> InstalledPackage:
    """
    Translate an installed package of a service.

    Raises:
        ParseProblem: A version or a range cannot be read.
    """
    return InstalledPackage(
        message.name,
        Version.parse(message.version),
        message.repository or None,
        ORIGIN.find(message.origin) or PackageOrigin.MANUAL,
        message.pinned,
        message.suspended,
        versions_in(message.requested_range),
        tuple(map(_requirement_from_pb, message.requires)),
        message.digest,
        message.content_digest,
    )


def declarations_to_pb(key: Key, declarations: Iterable[Declaration]) -> stack_pb2.SharedObject:
    """Translate the declarations of an object that several packages declare."""
    return stack_pb2.SharedObject(
        key=key_to_pb(key),
        declarations=(
            stack_pb2.ObjectDeclaration(
                name=each.key.name, labels=[label.name for label in each.labels], lifecycle_json=each.lifecycle
            )
            for each in declarations
        ),
    )


def declarations_from_pb(message: stack_pb2.SharedObject) -> tuple[Declaration, ...]:
    """Translate the declarations of an object that several packages declare."""
    return tuple(
        Declaration(
            Key(message.key.kind, each.name), tuple(Key(LABEL, name) for name in each.labels), each.lifecycle_json
        )
        for each in message.declarations
    )


def _requirement_from_pb(message: manifest_pb2.Requirement) -> Requirement:
    has_range = message.HasField("version_range")
    return Requirement(message.name, Range.parse(message.version_range) if has_range else None)
