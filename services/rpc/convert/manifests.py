"""Manifests, and references to objects of other packages, to messages and back."""

from pkger.model.v1 import manifest_pb2
from pkger.parser.v1 import parser_pb2

from services.core.model import Location, PackageReference
from services.packages.manifest import Manifest, Requirement
from services.rpc.convert.objects import (
    key_fields,
    key_from_pb,
    location_fields,
    location_from_pb,
    position_fields,
    position_from_pb,
)


def manifest_to_pb(manifest: Manifest, location: Location) -> manifest_pb2.Manifest:
    """Translate a manifest, whose first character is at *location*."""
    return manifest_pb2.Manifest(
        name=manifest.name,
        version=manifest.version.text,
        description=manifest.description,
        requires=map(requirement_to_pb, manifest.requires),
        platform_range=None if manifest.platform is None else str(manifest.platform),
        files=manifest.files,
        location=location_fields(location),
    )


def package_reference_to_pb(reference: PackageReference) -> parser_pb2.PackageReference:
    """Translate a reference to an object of another package."""
    return parser_pb2.PackageReference(
        key=key_fields(reference.key),
        path=reference.path,
        package=reference.package,
        name=reference.name,
        location=location_fields(reference.location),
        end=position_fields(reference.end),
    )


def package_reference_from_pb(message: parser_pb2.PackageReference) -> PackageReference:
    """Translate a reference to an object of another package."""
    return PackageReference(
        key_from_pb(message.key),
        message.path,
        message.package,
        message.name,
        location_from_pb(message.location),
        position_from_pb(message.end),
    )


def requirement_to_pb(requirement: Requirement) -> manifest_pb2.Requirement:
    """Translate a requirement."""
    version_range = None if requirement.range is None else str(requirement.range)
    return manifest_pb2.Requirement(name=requirement.name, version_range=version_range)
