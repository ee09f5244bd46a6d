"""
Asks the platform how it would hold the specs that a plan writes, and puts these prepared specs in place of the specs of
the package.
"""

from collections.abc import Mapping
from dataclasses import replace

from planner_svc.changes.differences import replacements, spec_changes
from planner_svc.matching.desired import Desired
from planner_svc.matching.match import Match, Matching
from planner_svc.matching.references import wanted_references
from services.core.errors import ContentRefused
from services.core.model import DesiredSpec, Key, PlatformTraits, Reference, Spec
from services.engine.outcome import Failed


def specs_to_prepare(desired: Desired, matching: Matching, platform: PlatformTraits) -> dict[Key, DesiredSpec]:
    """
    The specs of desired objects that differ from the live resource; the platform holds the others already.

    The spec of a replaced resource is prepared as one of a new resource, as it is created and not updated.

    Raises:
        UnreadableSpecError: The spec of a live resource cannot be read.
    """
    changed = spec_changes(matching, platform)
    replaced = replacements(matching, changed, platform).keys()
    matches = {
        key: match
        for key, match in matching.matches.items()
        if match.desired and (match.live is None or changed[key] or key in replaced)
    }
    references, _ = wanted_references(desired, matching, replaced, platform) if matches else ({}, [])
    specs: dict[Key, DesiredSpec] = {}
    for key, match in matches.items():
        assert match.desired is not None  # noqa: S101 - only specs of desired objects are prepared
        referred = tuple(Reference(each.pointer, each.key.kind, each.id) for each in references.get(key, ()))
        resource_id = match.live.id if match.live and key not in replaced else ""
        specs[key] = DesiredSpec(key.kind, resource_id, match.desired.spec, referred)
    return specs


def with_prepared(matching: Matching, prepared: Mapping[Key, Spec | Failed]) -> Matching:
    """*matching* with the specs of *prepared* instead of the specs of the package."""
    changed = {
        key: match._replace(desired=match.desired._replace(spec=spec))
        for key, spec in prepared.items()
        # A spec that the platform would hold unchanged is returned as the same Python object.
        if isinstance(spec, Spec) and (match := matching.matches[key]).desired and match.desired.spec is not spec
    }
    return replace(matching, matches={**matching.matches, **changed}) if changed else matching


def refuse_content(platform: str, matching: Matching, prepared: Mapping[Key, Spec | Failed]) -> None:
    """
    Refuse objects whose content the platform cannot hold; *platform* is its configured name.

    Raises:
        ContentRefused: Names as many of them as fit, each with its location.
    """
    refused = [
        _described(matching.matches[key], answer.message)
        for key, answer in prepared.items()
        if isinstance(answer, Failed)
    ]
    if refused:
        raise ContentRefused(platform, refused)


def _described(match: Match, problem: str) -> str:
    location = f"{match.desired.location}: " if match.desired and match.desired.location else ""
    return f"{location}{match.key}: {problem}"
