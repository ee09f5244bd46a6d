"""Messages that only tests make, of the values of the domain."""

from pkger.model.v1 import object_pb2

from services.core import model
from services.rpc.convert.objects import object_fields, references_to_pb


def package_to_pb(package: model.Package) -> object_pb2.Package:
    """Translate a package."""
    objects, lifecycle = map(object_fields, package.objects), package.lifecycles.get("", "")
    return object_pb2.Package(objects=objects, sources=package.sources, lifecycle_json=lifecycle)


def resource_to_pb(resource: model.Resource) -> object_pb2.Resource:
    """Translate a resource."""
    return object_pb2.Resource(
        kind=resource.kind,
        id=resource.id,
        spec_json=resource.spec.text,
        display_name=resource.spec.display_name,
        label_ids=resource.label_ids,
        references=references_to_pb(resource.references),
        unexpressed=resource.unexpressed,
    )
