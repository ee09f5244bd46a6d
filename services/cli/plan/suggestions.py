"""The suggestions of a conflict between packages, as requests that a user accepts by number."""

from pkger.model.v1 import package_change_pb2
from pkger.planner.v1 import package_pb2

from services.cli.errors import CommandFailed
from services.cli.exit_codes import Exit
from services.cli.process.interrupts import Interrupts
from services.cli.process.terminal import Terminal


async def chosen(
    changes: package_pb2.PackageChanges,
    conflict: package_change_pb2.PackageConflict,
    terminal: Terminal,
    interrupts: Interrupts,
) -> package_pb2.PackageChanges | None:
    """
    Ask which suggestion is accepted, and return the changes that it stands for; None: none is.

    Args:
        changes: What was requested.
        conflict: Why it cannot be done, with at least one suggestion.
        terminal: Where to ask.
        interrupts: Ends the question.

    Raises:
        CommandFailed: The answer is no number of a suggestion, or the user pressed Ctrl-C.
    """
    count = len(conflict.suggestions)
    question = "Plan it? [y/N] " if count == 1 else f"Plan which one, 1 to {count}? [none] "
    typed = (await terminal.ask(question, interrupts)).strip().lower()
    if typed in ("", "n", "no", "none"):
        return None
    number = 1 if count == 1 and typed in ("y", "yes") else int(typed) if typed.isdecimal() else 0
    if not 1 <= number <= count:
        raise CommandFailed(f"{typed} is no suggestion; nothing was written", Exit.CONFLICT)
    return accepted(changes, conflict.suggestions[number - 1])


def accepted(
    changes: package_pb2.PackageChanges, suggestion: package_change_pb2.Suggestion
) -> package_pb2.PackageChanges:
    """The changes that a suggestion stands for."""
    result = package_pb2.PackageChanges()
    result.CopyFrom(changes)
    match suggestion.kind:
        case package_change_pb2.SUGGESTION_KIND_UPDATE:
            result.options.update_dependencies = True
        case package_change_pb2.SUGGESTION_KIND_DOWNGRADE:
            result.options.allow_downgrade = True
        case package_change_pb2.SUGGESTION_KIND_CASCADE:
            result.options.cascade = True
        case package_change_pb2.SUGGESTION_KIND_UNPIN:
            result.options.update_dependencies = True
            pins = (package_pb2.PinnedPackage(name=name) for name in suggestion.unpins)
            result.changes.extend(package_pb2.PackageChange(unpin=each) for each in pins)
        case package_change_pb2.SUGGESTION_KIND_OTHER_VERSION:
            versions = dict(word.split("@", 1) for word in suggestion.command if "@" in word)
            for change in result.changes:
                package = change.install if change.HasField("install") else change.update
                if change.WhichOneof("change") in ("install", "update"):
                    package.version_range = versions.get(package.name, package.version_range)
        case package_change_pb2.SUGGESTION_KIND_REMOVE:
            names = [word for word in suggestion.command if not word.startswith("-")][2:]
            removals = (package_pb2.PackageUninstall(name=name) for name in names)
            result.changes.extend(package_pb2.PackageChange(uninstall=each) for each in removals)
    return result
