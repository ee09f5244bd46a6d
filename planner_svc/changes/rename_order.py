"""Unique names: which objects hold them, and which must be renamed before another object can take its name."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from planner_svc.matching.match import Match, Matching
from planner_svc.matching.name_index import holders_of, taken_by_object, taken_by_resources
from services.core.errors import NameTaken
from services.core.model import Key, Object, PlatformTraits, ResourceKey


def refuse_equal_names(matching: Matching, platform: PlatformTraits) -> None:
    """
    Refuse a package with two names that the platform treats as equal, even if the platform holds both already.

    Raises:
        NameTaken: Names the two objects.
    """
    claims: dict[tuple[str, str], Object] = {}
    for match in matching.matches.values():
        if match.desired is None:
            continue
        traits = platform.kinds[match.key.kind]
        unique = traits.unique_name(match.desired.spec.display_name)
        if unique is None:
            continue
        first = claims.setdefault((traits.scope, unique), match.desired)
        if first is not match.desired:
            raise taken_by_object(match.desired, first)


@dataclass(frozen=True, slots=True)
class NameOrder:
    """
    The order of writes that unique names demand.

    Attributes:
        needs: For each desired object: the objects that must be renamed first.
        name_conflicts: Errors of the objects whose name another resource keeps, or releases too late.
    """

    needs: Mapping[Key, Set[Key]]
    name_conflicts: Sequence[NameTaken] = ()


def refuse_taken_names(names: NameOrder) -> None:
    """
    Refuse a plan in which a name is not free when it is written.

    Raises:
        NameTaken: Another resource keeps the name, or releases it too late.
    """
    for clash in names.name_conflicts:
        raise clash


def creatable_first(replaced: Collection[Key], matching: Matching, platform: PlatformTraits) -> frozenset[Key]:
    """
    The *replaced* objects whose new resource can be created before the old one is deleted.

    Their names may repeat, or no resource holds them, or only resources that are renamed first.
    """
    if not replaced:
        return frozenset()
    holders, by_resource = holders_of(matching.live.values(), platform), _by_resource(matching)
    keys = set()
    for key in replaced:
        item = matching.matches[key].desired
        assert item is not None  # noqa: S101 - only desired objects change
        traits = platform.kinds[key.kind]
        held_by = holders.get((traits.scope, traits.unique_name(item.spec.display_name)), ())
        holding = [by_resource.get((each.kind, each.id)) for each in held_by]
        if all(each and each.desired and each.key not in replaced for each in holding):
            keys.add(key)
    return frozenset(keys)


def name_order(
    matching: Matching, phases: Mapping[Key, int], deletions: Mapping[Key, int], platform: PlatformTraits
) -> NameOrder:
    """
    Find the objects that must be renamed before others can take their names.

    Args:
        matching: The matches.
        phases: The phase in which an object is written; missing: 0, before all deletions.
        deletions: The phase, from 1, in which the resource of a removed or replaced object is deleted. Within a phase,
            deletions run before writes.
        platform: The rules of the platform for names.
    """
    holders, by_resource = holders_of(matching.live.values(), platform), _by_resource(matching)
    needs: dict[Key, set[Key]] = {}
    name_conflicts: list[NameTaken] = []
    for key, match in matching.matches.items():
        if match.desired is None:
            continue
        needs[key] = set()
        display_name = match.desired.spec.display_name
        held_by = holders.get((platform.kinds[key.kind].scope, platform.kinds[key.kind].unique_name(display_name)), ())
        # A resource that holds the name already keeps it, even if another resource holds it too.
        if match.live in held_by:
            continue
        for holder in held_by:
            holding = by_resource.get((holder.kind, holder.id))
            if holding is None:
                staying = [each for each in held_by if (each.kind, each.id) not in by_resource]
                name_conflicts.append(taken_by_resources(key, display_name, staying))
                continue
            # The object of the holder has another name now, or `refuse_equal_names` would have refused the package.
            released = deletions.get(holding.key, phases.get(holding.key, 0))
            if released > phases.get(key, 0):
                name_conflicts.append(
                    _released_late(key, display_name, holding.key, "removed" if holding.is_removal else "replaced")
                )
            elif not released:
                needs[key].add(holding.key)
    return NameOrder(needs, name_conflicts)


def _by_resource(matching: Matching) -> dict[ResourceKey, Match]:
    """The matches by live resource, without resources that stay with other stacks, as those keep their names."""
    return {
        (match.live.kind, match.live.id): match for match in matching.matches.values() if match.live and not match.stays
    }


def _released_late(key: Key, display_name: str, holder: Key, change: str) -> NameTaken:
    remedy = f"{holder} is {change} later in this plan. Apply without the new name first, then with it."
    return NameTaken(*key, display_name, str(holder), remedy)
