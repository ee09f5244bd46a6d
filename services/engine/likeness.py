"""Whether a resource is what a step found, or what it was to leave."""

from collections.abc import Collection

from services.core.model import KindTraits, Reference, Resource, Spec
from services.kinds.comparing import differences


def has_content(resource: Resource, spec: Spec | None, traits: KindTraits) -> bool:
    """Whether *resource* has the content *spec*, as far as the order of lists counts; never for None."""
    if spec is None:
        return False
    return not differences(resource.kind, resource.spec, resource.kind, spec, traits.set_paths)


def is_alike(resource: Resource, spec: Spec | None, references: Collection[Reference], traits: KindTraits) -> bool:
    """Whether *resource* has the content *spec* and refers to *references*."""
    return set(resource.references) == set(references) and has_content(resource, spec, traits)
