"""``pkger stacks drift``: how the resources of a stack differ from its last write and its package."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import click
from pkger.model.v1 import drift_pb2, object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from rich.console import Console
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console, print_lines
from services.cli.output.documents import print_records
from services.cli.output.enum_words import word
from services.cli.output.escapes import escaped, one_line
from services.cli.output.plan_text import FIRST_ENTRIES, MOST_ENTRIES, SHOWN_LINES, WIDTH
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session, session
from services.core.text_lists import and_more
from services.rpc.convert.drift import counts_from_pb
from services.rpc.message_json import document_of
from services.views.cutting import cut
from services.views.drift import SideGroup, counts_text, lines_of, side_groups
from services.views.lines import ADDED, LEFT_OUT, REMOVED

NEEDS = ("stack", "planner", "platform")

_STYLES = {
    "unreadable": "red",
    "leftover": "dim",
    "gone": "dim",
    "missing": "red",
    "conflict": "magenta",
    "drifted": "yellow",
    "pending": "cyan",
    "in sync": "green",
}
_GROUP_STYLES = ("green", "red", "yellow")
"""Styles of the groups of sides, in their order."""

_LINE_STYLES = {ADDED: "red", REMOVED: "green", LEFT_OUT: "cyan"}
"""The platform is the side that changed unexpectedly, so the colours are the reverse of the colours of a plan."""

_FULL = "--full shows all"


@dataclass(frozen=True, slots=True)
class Detection:
    """
    The result of one drift detection.

    Attributes:
        summary: Counts, and remarks on the stack as a whole.
        reports: One report for each resource, worst first.
        answers: The messages of the planner from which *summary* and *reports* are made.
    """

    summary: planner_pb2.DriftSummary
    reports: Sequence[planner_pb2.DriftReport]
    answers: Sequence[planner_pb2.DetectDriftResponse]

    @property
    def has_drift(self) -> bool:
        """Whether a resource that counts is not in sync, or unreadable."""
        counts = counts_from_pb(self.summary.counts)
        return sum(counts) > counts.in_sync


def keys_of(words: Sequence[str]) -> list[object_pb2.ObjectKey]:
    """
    The keys that ``KIND`` and ``KIND:NAME`` name.

    Raises:
        click.UsageError: A kind or a name is empty.
    """
    keys = []
    for each in words:
        kind, colon, name = each.partition(":")
        if not kind or (colon and not name):
            raise click.UsageError(f"{each!r} names no resource; write KIND:NAME, or KIND for all of a kind")
        keys.append(object_pb2.ObjectKey(kind=kind, name=name))
    return keys


async def drift(
    name: str,
    keys: Sequence[object_pb2.ObjectKey],
    target: object_pb2.Target,
    environ: Mapping[str, str],
    output: str,
    show_all: bool = False,
    full: bool = False,
) -> bool:
    """
    Print the drift of the resources of a stack, worst first.

    Args:
        name: Name or id of the stack.
        keys: Resources to compare; empty: all.
        target: Where the name is looked up.
        environ: The environment.
        output: "text", "json" or "yaml".
        show_all: Whether resources that are in sync, and drift that the policy ignores, are shown, too.
        full: Whether nothing is cut.

    Returns:
        Whether there is drift that counts, as ``Detection.has_drift`` says.

    Raises:
        CommandFailed: The stack cannot be compared with its platform.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ, target.platform) as services:
            detection = await interrupts.or_stop(_detect(services, name, keys, target))
    if output != "text":
        print_records(map(document_of, detection.answers), output)
    else:
        print_lines(console(), list(_lines(detection, show_all, full)))
        _print_remarks(console(stderr=True), detection, bool(keys))
    return detection.has_drift


async def _detect(
    services: Session, name: str, keys: Sequence[object_pb2.ObjectKey], target: object_pb2.Target
) -> Detection:
    stack = await ref_of(services.stack, target, name)
    request = planner_pb2.DetectDriftRequest(stack=stack, keys=keys)
    stub = PlannerServiceStub(services.planner.channel)
    answers = [answer async for answer in services.planner.stream(stub.DetectDrift, request)]
    summary = planner_pb2.DriftSummary()
    for answer in answers:
        summary.MergeFrom(answer.summary)
    return Detection(summary, [report for answer in answers for report in answer.reports.reports], answers)


def _lines(detection: Detection, show_all: bool, full: bool) -> Iterator[Text]:
    shown = [report for report in detection.reports if show_all or _counts(report)]
    count = len(shown) if full or len(shown) <= MOST_ENTRIES else FIRST_ENTRIES
    for report in shown[:count]:
        yield from _report_lines(report, full)
    if more := and_more(len(shown) - count):
        yield Text(f"…{more}; {_FULL}", "dim")
    yield Text(_sum(detection), "bold")


def _sum(detection: Detection) -> str:
    counts = counts_text(detection.summary.counts)
    return f"{'Drift' if detection.has_drift else 'No drift'}: {counts or 'the stack has no resources'}."


def _counts(report: planner_pb2.DriftReport) -> bool:
    """Whether a report shows drift that the policy does not ignore."""
    changed = (drift_pb2.DRIFT_STATUS_MISSING, drift_pb2.DRIFT_STATUS_CONFLICT, drift_pb2.DRIFT_STATUS_DRIFTED)
    is_ignored = report.is_ignored and report.status in changed
    return report.status != drift_pb2.DRIFT_STATUS_IN_SYNC and not is_ignored


def _report_lines(report: planner_pb2.DriftReport, full: bool) -> Iterator[Text]:
    status = word(drift_pb2.DriftStatus, "DRIFT_STATUS", report.status)
    subject = f"{report.key.kind} {report.key.name}"
    if report.display_name:
        subject += f" {json.dumps(report.display_name, ensure_ascii=False)}"
    line = Text("").append(status, _STYLES[status]).append(f" {one_line(subject)}")
    if notes := list(_notes(report)):
        line.append(f"  ({one_line('; '.join(notes))})", "dim")
    yield line
    for field in report.fields:
        yield from _field_lines(field, status, full)


def _notes(report: planner_pb2.DriftReport) -> Iterator[str]:
    if report.problem:
        yield report.problem
    if report.origin == object_pb2.ORIGIN_SHARED:
        yield "shared: another stack owns it"
    if report.HasField("same_name"):
        same = report.same_name
        owner = f"stack {same.stack_name or same.stack_id!r} owns" if same.stack_id else "no stack owns"
        yield f"{same.resource.kind} {same.resource.id}, which {owner}, has its name now"
    if report.is_ignored:
        yield "its policy ignores drift"


def _field_lines(field: drift_pb2.DriftField, status: str, full: bool) -> Iterator[Text]:
    field_class = word(drift_pb2.DriftClass, "DRIFT_CLASS", field.field_class)
    path = one_line(field.path.lstrip("/")) or "the whole resource: the current revision does not have it"
    yield Text(f"  {path}" + ("" if field_class == status else f" ({field_class})"))
    groups = side_groups(field)
    if lines := lines_of(groups):
        before, after = groups
        yield Text("    ").append(f"- {_names(before)}", "green").append("  ").append(f"+ {_names(after)}", "red")
        most = len(lines) if full or len(lines) <= SHOWN_LINES else SHOWN_LINES - 1
        for line in lines[:most]:
            text = f"from line {line.text}" if line.sign == LEFT_OUT else escaped(line.text)
            yield Text(f"    {line.sign} {text}".rstrip(), _LINE_STYLES.get(line.sign, ""))
        if more := len(lines) - most:
            yield Text(f"    … {more} more lines; {_FULL}", "dim")
        return
    width = max(len(_names(group)) for group in groups)
    texts = [group.text for group in groups]
    if not full:
        texts = cut(texts, WIDTH - width - 6)
    for group, text, style in zip(groups, texts, _GROUP_STYLES, strict=False):
        yield Text(f"    {_names(group):<{width}}  ").append(one_line(text), style)


def _names(group: SideGroup) -> str:
    return ", ".join(group.names)


def _print_remarks(err: Console, detection: Detection, has_keys: bool) -> None:
    summary, lines = detection.summary, list[str]()
    if summary.without_baseline_count:
        left = "" if summary.revision else ": only missing resources can be detected"
        lines.append(
            f"{summary.without_baseline_count:,} resource(s) have no baseline yet{left}; the next apply records them"
        )
    if not (has_keys or summary.is_stored):
        lines.append("an operation runs on the stack: changes that it has not written yet look like drift")
    print_lines(err, [Text(line, "yellow") for line in lines])
