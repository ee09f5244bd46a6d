"""A plan as text for users: its entries in order, its remarks, and counts by kind."""

import json
from collections.abc import Callable, Iterator, Sequence

from pkger.model.v1 import operation_pb2, plan_pb2
from rich.console import Console
from rich.text import Text

from services.cli.output.consoles import print_lines
from services.cli.output.effects import SUMMED, WORDS, Wording
from services.cli.output.escapes import escaped, one_line
from services.cli.output.package_changes import change_lines, held_back_lines, number_of
from services.core.text_lists import and_more
from services.rpc.plan_parts import JoinedPlan
from services.views.cutting import cut, window
from services.views.entries import Act, Mark, PlanEntry, counts_by_kind, entries
from services.views.fields import fields_of
from services.views.hunks import Hunk
from services.views.lines import ADDED, LEFT_OUT, REMOVED, Line
from services.views.warnings import warning_lines

SHOWN_WARNINGS = 10

MOST_ENTRIES = 200
"""A plan with more entries is cut to the first ``FIRST_ENTRIES``."""

FIRST_ENTRIES = 50

SHOWN_FIELDS = 6
"""Fields that are shown of a resource that is created or deleted."""

SHOWN_LINES = 40
"""Lines that are shown of the difference of two texts."""

WIDTH = 80
"""Columns that a line should fit into."""

_FULL = "--full shows all"
_STYLES = {ADDED: "green", REMOVED: "red", LEFT_OUT: "cyan"}


def print_plan(out: Console, plan: JoinedPlan, full: bool = False) -> None:
    """Print the entries of a plan in order, with old and new values, its remarks and counts; *full*: uncut."""
    plan_entries = entries(plan)
    lines = [*change_lines(plan.header.packages), *held_back_lines(plan.remarks.held_back)]
    lines += entries_lines(plan_entries, full)
    lines += _remark_lines(plan.remarks, full)
    kinds = counts_by_kind(plan_entries)
    if len(kinds) > 1:
        width = max(map(len, kinds))
        for kind, counts in kinds.items():
            acts = ", ".join(f"{counts[act]} {words.planned}" for act, words in WORDS.items() if counts[act])
            lines.append(Text(f"{kind:<{width}}  {acts}"))
    packages = f"{number_of(len(plan.header.packages), 'package')}: " if plan.header.packages else ""
    lines.append(Text(f"Plan: {packages}{plan_sum(plan.header)}.", "bold"))
    print_lines(out, lines)


def entries_lines(plan_entries: Sequence[PlanEntry], full: bool) -> list[Text]:
    """The lines of entries; unless *full*, of many entries only the first."""
    count = len(plan_entries) if full or len(plan_entries) <= MOST_ENTRIES else FIRST_ENTRIES
    lines = [line for entry in plan_entries[:count] for line in _entry_lines(entry, full)]
    if more := and_more(len(plan_entries) - count):
        lines.append(Text(f"  …{more}; {_FULL}", "dim"))
    return lines


def plan_sum(plan: plan_pb2.Plan) -> str:
    """The step counts of a plan, as text."""
    parts = _counted(plan.counts, lambda words: words.planned, losing=("loses data", "lose data"))
    if plan.counts.irreversible:
        parts.append("steps that cannot be undone run last")
    if parts:
        return ", ".join(parts)
    return "nothing to do" if plan.no_change else "nothing to do on the platform, the record changes"


def done_sum(finished: operation_pb2.Finished) -> str:
    """The counts of steps that are in effect after an operation, as text."""
    if finished.no_change:
        return "nothing to do, nothing written"
    if parts := _counted(finished.counts, lambda words: words.done, losing=("lost data", "lost data")):
        return ", ".join(parts)
    return "nothing" if finished.leftover_count else "nothing to do on the platform, the record changes"


def _counted(counts: plan_pb2.StepCounts, wording: Callable[[Wording], str], losing: tuple[str, str]) -> list[str]:
    """The counts that are not 0; *losing*: text after the number of updates that lose data, for one and for more."""
    numbers = {name: getattr(counts, name) for name in SUMMED}
    parts = {name: f"{numbers[name]} {wording(words)}" for name, words in SUMMED.items() if numbers[name]}
    if counts.losses:
        parts["updates"] += f" ({counts.losses} {losing[counts.losses > 1]})"
    return list(parts.values())


def _entry_lines(entry: PlanEntry, full: bool) -> Iterator[Text]:
    words = WORDS[entry.act]
    line = Text("  ").append(f"{words.sign} {_subject(entry)}", words.style)
    notes = [entry.reason] if entry.act is Act.DELETE and entry.reason else []
    notes += ["overwritten"] if entry.act is Act.OVERWRITE_SECRET else []
    notes += [_note(mark, entry) for mark in entry.marks]
    if notes:
        line.append(f"  ({one_line('; '.join(notes))})", "dim")
    yield line
    if entry.act is Act.UPDATE:
        hunks = entry.hunks()
        yield from (each for hunk in hunks for each in _hunk_lines(hunk, full))
        if not hunks:
            # An unowned or skipped resource loses its reference to a deleted resource: only the reason says so.
            yield Text(f"      {one_line(entry.reason)}", "dim")
    elif entry.spec:
        yield from _field_lines(entry, words.style, full)


def _subject(entry: PlanEntry) -> str:
    subject = f"{entry.key.kind} {entry.key.name or entry.resource_id}"
    if entry.label and entry.act in (Act.ATTACH, Act.DETACH):
        subject += f" {'with' if entry.act is Act.ATTACH else 'without'} label {entry.label.name or entry.label_id}"
    elif entry.display_name:
        subject += f" {json.dumps(entry.display_name, ensure_ascii=False)}"
    return one_line(subject)


def _note(mark: Mark, entry: PlanEntry) -> str:
    match mark:
        case Mark.ADOPTED:
            return "adopted: it exists, and no stack owns it"
        case Mark.SHARED:
            return "shared: another stack owns it, and this one uses it unchanged"
        case Mark.RENAMED:
            return f"renamed in the package, from {entry.old_key}"
        case Mark.LOSS:
            return f"loses {entry.lost_data}"
        case Mark.IRREVERSIBLE:
            return "cannot be undone"


def _field_lines(entry: PlanEntry, style: str, full: bool) -> Iterator[Text]:
    fields = fields_of(entry.spec, WIDTH - 30, full)
    shown = fields if full or len(fields) <= SHOWN_FIELDS else fields[: SHOWN_FIELDS - 1]
    for field in shown:
        yield Text(f"      {one_line(field.path)}: ").append(one_line(field.value), style)
        for line in field.lines:
            yield Text("        | ", "dim").append(escaped(line), style)
    if more := len(fields) - len(shown):
        yield Text(f"      … {more} more fields; {_FULL}", "dim")


def _hunk_lines(hunk: Hunk, full: bool) -> Iterator[Text]:
    path = one_line(hunk.path) + (" (order)" if hunk.moved else "")
    if hunk.lines:
        yield Text(f"      {path}:")
        yield from _text_lines(hunk.lines, full)
        return
    if not (hunk.old and hunk.new):
        sign, value = (ADDED, hunk.new) if hunk.new else (REMOVED, hunk.old)
        value = value if full else window(value, 0, max(20, WIDTH - 10 - len(path)))
        yield Text("      ").append(f"{sign} {path}: {one_line(value)}", _STYLES[sign])
        return
    old, new = (hunk.old, hunk.new) if full else cut((hunk.old, hunk.new), WIDTH - 12)
    old, new = one_line(old), one_line(new)
    if len(path) + len(old) + len(new) <= WIDTH - 12:
        yield Text(f"      {path}: ").append(old, "red").append(" -> ").append(new, "green")
        return
    yield Text(f"      {path}:")
    yield Text("        - ").append(old, "red")
    yield Text("        + ").append(new, "green")


def _text_lines(lines: Sequence[Line], full: bool) -> Iterator[Text]:
    shown = lines if full or len(lines) <= SHOWN_LINES else lines[: SHOWN_LINES - 1]
    for line in shown:
        text = f"from line {line.text}" if line.sign == LEFT_OUT else escaped(line.text)
        if line.sign in (ADDED, REMOVED):
            # Otherwise, lines that differ in trailing spaces would look the same.
            bare = text.rstrip(" \t")
            text = bare + text[len(bare) :].replace(" ", "·").replace("\t", "→")
        yield Text(f"        {line.sign} {text}".rstrip(), _STYLES.get(line.sign, ""))
    if more := len(lines) - len(shown):
        yield Text(f"        … {more} more lines; {_FULL}", "dim")


def _remark_lines(remarks: plan_pb2.PlanRemarks, full: bool) -> list[Text]:
    lines = []
    unresolved = set(remarks.unresolved_env_refs)
    defaulted = [key for key in remarks.missing_env_refs if key not in unresolved]
    if unresolved:
        keys = ", ".join(remarks.unresolved_env_refs)
        lines.append(f"environment values not given, and without a default: {keys}")
    if defaulted:
        lines.append(f"environment values not given, their defaults are used: {', '.join(defaulted)}")
    if remarks.missing_secrets:
        lines.append(f"secrets not given: {', '.join(remarks.missing_secrets)}")
    lines += _some("conflict", [conflict.message for conflict in remarks.conflicts], full)
    lines += _some("warning", warning_lines(remarks, full), full)
    return [Text(one_line(line), "yellow") for line in lines]


def _some(noun: str, remarks: Sequence[str], full: bool) -> list[str]:
    count = len(remarks) if full else SHOWN_WARNINGS
    more = and_more(len(remarks) - count, "", f"{noun}s")
    return [*(f"{noun}: {remark}" for remark in remarks[:count]), *([f"{more}; {_FULL}"] if more else [])]
