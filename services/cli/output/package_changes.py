"""Changes of packages, and conflicts between them, as lines of text."""

import shlex
from collections.abc import Iterable, Iterator

from pkger.model.v1 import resolution_pb2
from rich.text import Text

from services.cli.output.escapes import one_line
from services.core.text_lists import enumerated, listed

_FACTS = 20
"""Most lines of facts of a conflict; the data have all of them."""

_CHANGES = 5
"""Most changes in the line of a suggestion."""

_SIGNS = {
    resolution_pb2.PACKAGE_ACTION_INSTALL: ("+", "green"),
    resolution_pb2.PACKAGE_ACTION_UPDATE: ("^", "yellow"),
    resolution_pb2.PACKAGE_ACTION_DOWNGRADE: ("v", "yellow"),
    resolution_pb2.PACKAGE_ACTION_REMOVE: ("-", "red"),
    resolution_pb2.PACKAGE_ACTION_MARK: ("~", "yellow"),
}


def change_lines(changes: Iterable[resolution_pb2.PlannedPackage]) -> list[Text]:
    """A line for each package, in order, with its repository and the packages that need it."""
    lines = []
    for change in changes:
        sign, style = _SIGNS.get(change.action, ("?", ""))
        source = f" from {change.repository}" if change.repository else ""
        needed = f" (needed by {enumerated(change.required_by)})" if change.required_by else ""
        lines.append(Text(one_line(f"{sign} {_moved(change)}{source}{needed}"), style))
    return lines


def warning_lines(warnings: Iterable[resolution_pb2.ResolutionWarning]) -> Iterator[str]:
    """A sentence for each warning."""
    for each in warnings:
        match each.code:
            case resolution_pb2.RESOLUTION_WARNING_CODE_BROKEN_BEFORE:
                yield f"{each.package} requires {each.dependency} as it is not, which was so before"
            case resolution_pb2.RESOLUTION_WARNING_CODE_PLATFORM:
                yield f"the installed version of {each.package} is for other versions of pkger"
            case resolution_pb2.RESOLUTION_WARNING_CODE_REPOSITORY_UNAVAILABLE:
                yield f"repository {each.repository} does not answer; `pkger packages search` prints why"
            case resolution_pb2.RESOLUTION_WARNING_CODE_YANKED:
                yield f"the installed version of {each.package} is yanked; `pkger packages versions` prints why"


def conflict_lines(conflict: resolution_pb2.PackageConflict) -> list[Text]:
    """The conflict, its facts, and what works instead, with the command to type."""
    lines = [Text(one_line(f"conflict: {conflict.text}"), "bold red")]
    lines += [Text(f"  {one_line(fact.text)}") for fact in conflict.facts[:_FACTS]]
    if (more := len(conflict.facts) - _FACTS) > 0:
        lines.append(Text(f"  and {more:,} more; -o json has all of them"))
    if conflict.incomplete and conflict.facts:
        lines.append(Text("not reduced further: some of these may not matter, and suggestions may be missing"))
    if conflict.suggestions:
        lines.append(Text("Suggestions:", "bold"))
        commands = [one_line(_command(each)) for each in conflict.suggestions]
        width = max(map(len, commands))
        for command, each in zip(commands, conflict.suggestions, strict=True):
            changes = listed([_short(change) for change in each.changes], _CHANGES)
            lines.append(Text(f"  {command:<{width}}  {one_line(changes)}"))
    return lines


def _command(suggestion: resolution_pb2.Suggestion) -> str:
    return shlex.join(suggestion.command) if suggestion.command else "(no single command)"


def _moved(change: resolution_pb2.PlannedPackage) -> str:
    """A package with its versions."""
    if change.old_version and change.new_version:
        return f"{change.name} {change.old_version} -> {change.new_version}"
    return f"{change.name} {change.new_version or change.old_version}".rstrip()


def _short(change: resolution_pb2.PlannedPackage) -> str:
    is_move = bool(change.old_version and change.new_version)
    return _moved(change) if is_move else f"{_SIGNS.get(change.action, ('?', ''))[0]} {_moved(change)}"
