"""What packages and their objects say themselves of the policies of objects (docs/policies.md, "In packages")."""

from collections.abc import Mapping
from typing import Any

import orjson

from services.core.model import Key, Object, Package
from services.kinds.policy import NO_POLICY, OwnPolicy, combined
from services.packages.lifecycle import policy_in
from services.packages.package_text import Declaration


def own_policies(package: Package, declarations: Mapping[Key, tuple[Declaration, ...]]) -> dict[Key, OwnPolicy]:
    """
    The own policies of those objects that have one, by key.

    An object that several packages declare has what all of them say; where they contradict each other, the package
    whose key it has counts.

    Args:
        package: The package of a stack.
        declarations: The declarations of objects that several packages declare.
    """
    documents = {name: policy_in(text) for name, text in package.lifecycles.items()}
    if not (documents or declarations or any(item.lifecycle for item in package.objects)):
        return {}
    policies = {item.key: _own_policy(item, declarations.get(item.key, ()), documents) for item in package.objects}
    return {key: policy for key, policy in policies.items() if policy and any(policy)}


def _own_policy(
    item: Object, declarations: tuple[Declaration, ...], documents: Mapping[str, Mapping[str, Any]]
) -> OwnPolicy | None:
    """The own policy of an object; None where nothing can be said of it."""
    if not (documents or item.lifecycle or declarations):
        return None
    others = [each for each in declarations if each.key != item.key]
    declared = [*reversed(others), Declaration(item.key, (), item.lifecycle)]
    of_packages, of_objects = [], []
    for each in declared:
        name, _, own_name = each.key.name.rpartition(".")
        own_key = each.key._replace(name=own_name)
        of_packages.append(combined([documents.get(name, NO_POLICY)], own_key))
        of_objects.append(orjson.loads(each.lifecycle) if each.lifecycle else NO_POLICY)
    return OwnPolicy(combined(of_packages, item.key), combined(of_objects, item.key))
