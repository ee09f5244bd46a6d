"""Who has which unique name, and what has to be renamed before another can take its name."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from planner_svc.holders import holders_of, taken_by_object, taken_by_resources
from planner_svc.matching import Match, Matching
from services.core.errors import NameTaken
from services.core.model import Key, Object, PlatformTraits, ResourceKey


def refuse_equal_names(matching: Matching, platform: PlatformTraits) -> None:
    """
    Refuse a package with two names that the platform takes for one, whether or not it holds both from earlier times.

    Raises:
        NameTaken: Names the two objects.
    """
    claims: dict[tuple[str, str], Object] = {}
    for found in matching.matches.values():
        if found.wanted is None:
            continue
        traits = platform.kinds[found.key.kind]
        unique = traits.unique_name(found.wanted.spec.display_name)
        if unique is None:
            continue
        first = claims.setdefault((traits.scope, unique), found.wanted)
        if first is not found.wanted:
            raise taken_by_object(found.wanted, first)


@dataclass(frozen=True, slots=True)
class NameOrder:
    """
    What the names of objects say about the order in which these are written.

    Attributes:
        needs: For each wanted object: the objects that must be renamed first.
        clashes: Errors of the objects whose name another resource keeps, or gives up too late.
    """

    needs: Mapping[Key, Set[Key]]
    clashes: Sequence[NameTaken] = ()


def refuse_taken_names(names: NameOrder) -> None:
    """
    Refuse a plan in which a name is not free when it is written.

    Raises:
        NameTaken: Another resource keeps the name, or gives it up too late.
    """
    for clash in names.clashes:
        raise clash


def may_live_beside(replaced: Collection[Key], matching: Matching, platform: PlatformTraits) -> frozenset[Key]:
    """
    Those of *replaced* objects whose new resource can be created before the old one is deleted.

    Their names may repeat, or are names of nothing that is there, but for what is renamed before.
    """
    if not replaced:
        return frozenset()
    holders, by_resource = holders_of(matching.live.values(), platform), _by_resource(matching)
    found = set()
    for key in replaced:
        wanted = matching.matches[key].wanted
        assert wanted is not None  # noqa: S101 - only wanted objects change
        traits = platform.kinds[key.kind]
        held_by = holders.get((traits.scope, traits.unique_name(wanted.spec.display_name)), ())
        givers = [by_resource.get((each.kind, each.id)) for each in held_by]
        if all(giver and giver.wanted and giver.key not in replaced for giver in givers):
            found.add(key)
    return frozenset(found)


def name_order(
    matching: Matching, turns: Mapping[Key, int], deletions: Mapping[Key, int], platform: PlatformTraits
) -> NameOrder:
    """
    Find out which objects must be renamed before another can have its name.

    Args:
        matching: The matches.
        turns: When objects are written that are not written first. Missing: 0.
        deletions: When the resources of those that leave or are replaced are deleted, from 1: a higher turn comes after
            a lower one, and within one, deletions come before writes.
        platform: What the platform demands of names.
    """
    holders, by_resource = holders_of(matching.live.values(), platform), _by_resource(matching)
    needs: dict[Key, set[Key]] = {}
    clashes: list[NameTaken] = []
    for key, found in matching.matches.items():
        if found.wanted is None:
            continue
        needs[key] = set()
        display_name = found.wanted.spec.display_name
        held_by = holders.get((platform.kinds[key.kind].scope, platform.kinds[key.kind].unique_name(display_name)), ())
        # What has the name already keeps it, even where the platform holds another resource that has it too.
        if found.live in held_by:
            continue
        for holder in held_by:
            giver = by_resource.get((holder.kind, holder.id))
            if giver is None:
                staying = [each for each in held_by if (each.kind, each.id) not in by_resource]
                clashes.append(taken_by_resources(key, display_name, staying))
                continue
            # The name of its object is another one by now, or `refuse_equal_names` would have found it.
            given_up = deletions.get(giver.key, turns.get(giver.key, 0))
            if given_up > turns.get(key, 0):
                clashes.append(
                    _given_up_late(key, display_name, giver.key, "removed" if giver.is_removal else "replaced")
                )
            elif not given_up:
                needs[key].add(giver.key)
    return NameOrder(needs, clashes)


def _by_resource(matching: Matching) -> dict[ResourceKey, Match]:
    """The matches that say what becomes of the name of a resource; what is left to other stacks keeps it."""
    return {
        (found.live.kind, found.live.id): found for found in matching.matches.values() if found.live and not found.stays
    }


def _given_up_late(key: Key, display_name: str, holder: Key, what: str) -> NameTaken:
    remedy = f"{holder} is {what} later in this plan. Apply without the new name first, then with it."
    return NameTaken(*key, display_name, str(holder), remedy)
