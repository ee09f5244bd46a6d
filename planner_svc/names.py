"""Who has which unique name, and what has to be renamed before another can take its name."""

from collections.abc import Mapping

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


def name_needs(matching: Matching, turns: Mapping[Key, int], platform: PlatformTraits) -> dict[Key, set[Key]]:
    """
    For each wanted object whose name another resource still has: the objects that must be renamed first.

    Args:
        matching: The matches.
        turns: When objects are written that are not written first, and when those that leave are removed: a higher turn
            comes after a lower one, and within one, removals come before writes. Missing: 0, before all of them.
        platform: What the platform demands of names.

    Raises:
        NameTaken: The other resource keeps its name, or gives it up too late.
    """
    holders = holders_of(matching.live.values(), platform)
    renamed = {
        (found.live.kind, found.live.id): found for found in matching.matches.values() if found.live and found.wanted
    }
    removed = {
        (found.live.kind, found.live.id): found.key
        for found in matching.matches.values()
        if found.live and found.is_removal
    }
    needs: dict[Key, set[Key]] = {}
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
                if turns.get(removed[holder_key], 0) <= turns.get(key, 0):
                    continue
                raise _given_up_late(key, display_name, removed[holder_key], "removed")
            if holder_key not in renamed:
                staying = [each for each in held_by if (each.kind, each.id) not in renamed]
                raise taken_by_resources(key, display_name, staying)
            # That holder's own name is another one by now, or `refuse_equal_names` would have found it.
            giver = renamed[holder_key].key
            if not turns.get(giver):
                needs[key].add(giver)
            elif turns[giver] > turns.get(key, 0):
                raise _given_up_late(key, display_name, giver, "replaced")
    return needs


def _given_up_late(key: Key, display_name: str, holder: Key, what: str) -> NameTaken:
    way_out = f"It is {what} only after that: apply without the new name first, and with it then."
    return NameTaken(*key, display_name, str(holder), way_out)
