"""Whether a resource has the content before a step, or the content after it."""

from collections.abc import Collection

from services.core.model import KindTraits, Reference, Resource, Spec
from services.kinds.comparing import differences


def has_content(resource: Resource, spec: Spec | None, traits: KindTraits) -> bool:
    """Whether *resource* has the content *spec*, but for the order of lists that are sets; False for None."""
    if spec is None:
        return False
    return not differences(resource.kind, resource.spec, resource.kind, spec, traits.set_paths)


def matches(resource: Resource, spec: Spec | None, references: Collection[Reference], traits: KindTraits) -> bool:
    """Whether *resource* has the content *spec* and refers to *references*."""
    return set(resource.references) == set(references) and has_content(resource, spec, traits)
