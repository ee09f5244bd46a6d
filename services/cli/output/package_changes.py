"""Changes of packages, and conflicts between them, as lines of text."""

import shlex
from collections.abc import Iterable

from pkger.model.v1 import package_change_pb2
from pkger.stack.v1 import stack_pb2
from rich.text import Text

from services.cli.output.escapes import one_line
from services.core.text_lists import enumerated, listed

_FACTS = 20
"""Most lines of facts of a conflict; the data have all of them."""

_CHANGES = 5
"""Most changes in the line of a suggestion."""

_SIGNS = {
    package_change_pb2.PACKAGE_ACTION_INSTALL: ("+", "green"),
    package_change_pb2.PACKAGE_ACTION_UPDATE: ("^", "yellow"),
    package_change_pb2.PACKAGE_ACTION_DOWNGRADE: ("v", "yellow"),
    package_change_pb2.PACKAGE_ACTION_REMOVE: ("-", "red"),
    package_change_pb2.PACKAGE_ACTION_MARK: ("~", "yellow"),
}


_CONSENTS = {
    package_change_pb2.SUGGESTION_KIND_UPDATE: "the same with --update-dependencies",
    package_change_pb2.SUGGESTION_KIND_DOWNGRADE: "the same with --allow-downgrade",
    package_change_pb2.SUGGESTION_KIND_CASCADE: "the same with --cascade",
}


def change_lines(changes: Iterable[package_change_pb2.PlannedPackage]) -> list[Text]:
    """A line for each package, in order, with its repository and the packages that need it."""
    lines = []
    for change in changes:
        sign, style = _SIGNS.get(change.action, ("?", ""))
        source = f" from {change.repository}" if change.repository else ""
        needed = f" (needed by {enumerated(change.required_by)})" if change.required_by else ""
        if change.action == package_change_pb2.PACKAGE_ACTION_MARK:
            source, needed = f" {' '.join(_flags(change.record))}".rstrip(), ""
        lines.append(Text(one_line(f"{sign} {_moved(change)}{source}{needed}"), style))
    return lines


def move_texts(packages: Iterable[stack_pb2.RevisionPackage]) -> list[str]:
    """The packages that differ between two revisions, such as "base-labels 1.1.0 -> 1.3.0" and "+ team 0.1.0"."""
    texts = []
    for each in packages:
        if each.old_version == each.new_version:
            texts.append(one_line(f"~ {each.name} {each.new_version}"))
        elif each.old_version and each.new_version:
            texts.append(one_line(f"{each.name} {each.old_version} -> {each.new_version}"))
        else:
            sign = "+" if each.new_version else "-"
            texts.append(one_line(f"{sign} {each.name} {each.new_version or each.old_version}"))
    return texts


def held_back_lines(packages: Iterable[package_change_pb2.HeldBackPackage]) -> list[Text]:
    """A line for each package that is held back, with the facts that hold it."""
    return [
        Text(one_line(f"= {each.name} is held back: {'; '.join(fact.text for fact in each.facts) or 'not explained'}"))
        for each in packages
    ]


def number_of(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def conflict_lines(conflict: package_change_pb2.PackageConflict) -> list[Text]:
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


def _flags(record: package_change_pb2.InstalledPackage) -> list[str]:
    """What is recorded of a package besides its version, as words."""
    return flags(record) + ([f"within {record.requested_range}"] if record.requested_range else [])


def flags(record: package_change_pb2.InstalledPackage) -> list[str]:
    """Origin and pins of an installed package, as words."""
    words = ["dependency" if record.origin == package_change_pb2.PACKAGE_ORIGIN_DEPENDENCY else "manual"]
    words += ["pinned"] if record.pinned else []
    return [*words, "suspended"] if record.suspended else words


def _command(suggestion: package_change_pb2.Suggestion) -> str:
    return shlex.join(suggestion.command) or _CONSENTS.get(suggestion.kind, "(no single command)")


def _moved(change: package_change_pb2.PlannedPackage) -> str:
    """A package with its versions."""
    if change.old_version and change.new_version:
        return f"{change.name} {change.old_version} -> {change.new_version}"
    return f"{change.name} {change.new_version or change.old_version}".rstrip()


def _short(change: package_change_pb2.PlannedPackage) -> str:
    is_move = bool(change.old_version and change.new_version)
    return _moved(change) if is_move else f"{_SIGNS.get(change.action, ('?', ''))[0]} {_moved(change)}"
