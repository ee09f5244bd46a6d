"""Who has which unique name, and what has to be renamed before another can take its name."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from planner_svc.holders import holders_of, taken_by_object, taken_by_resources
from planner_svc.matching import Matching
from services.core.errors import NameTaken
from services.core.model import Key, Object, PlatformTraits


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


def name_order(matching: Matching, turns: Mapping[Key, int], platform: PlatformTraits) -> NameOrder:
    """
    Find out which objects must be renamed before another can have its name.

    Args:
        matching: The matches.
        turns: When objects are written that are not written first, and when those that leave are removed: a higher turn
            comes after a lower one, and within one, removals come before writes. Missing: 0, before all of them.
        platform: What the platform demands of names.
    """
    holders = holders_of(matching.live.values(), platform)
    renamed = {
        (found.live.kind, found.live.id): found for found in matching.matches.values() if found.live and found.wanted
    }
    removed = {
        (found.live.kind, found.live.id): found.key
        for found in matching.matches.values()
        if found.live and found.is_deletion
    }
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
            holder_key = (holder.kind, holder.id)
            if holder_key in removed:
                if turns.get(removed[holder_key], 0) > turns.get(key, 0):
                    clashes.append(_given_up_late(key, display_name, removed[holder_key], "removed"))
                continue
            if holder_key not in renamed:
                staying = [each for each in held_by if (each.kind, each.id) not in renamed]
                clashes.append(taken_by_resources(key, display_name, staying))
                continue
            # That holder's own name is another one by now, or `refuse_equal_names` would have found it.
            giver = renamed[holder_key].key
            if not turns.get(giver):
                needs[key].add(giver)
            elif turns[giver] > turns.get(key, 0):
                clashes.append(_given_up_late(key, display_name, giver, "replaced"))
    return NameOrder(needs, clashes)


def _given_up_late(key: Key, display_name: str, holder: Key, what: str) -> NameTaken:
    way_out = f"It is {what} only after that: apply without the new name first, and with it then."
    return NameTaken(*key, display_name, str(holder), way_out)
