"""Errors keep all their data over the wire: one enum, and one class for each reason."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, PreconditionFailure, ResourceInfo, RetryInfo
from pkger.driver.v1 import driver_pb2
from pkger.errors.v1 import reason_pb2
from pkger.stack.v1 import stack_pb2

from services.core import errors
from services.core.errors import ERRORS, LONGEST_RETRY_SECONDS, PkgerError, Reason
from services.rpc.errors import DOMAIN, MOST_TRAILER_BYTES, to_status
from tests.rpc.plumbing import Context, get, list_resources, peer_of

EXAMPLES: list[PkgerError] = [
    errors.RequestInvalid("page_size", "must not be negative"),
    errors.SourceUndecodable("a.yml", "no YAML", 3, 7),
    errors.SourceTooLarge("a.yml", "nesting depth", 100),
    errors.SourceUnreadable("https://example.com/a.yml", "404 Not Found"),
    errors.EncodingInvalid("a.jsonnet", "jsonnet", "send JSON"),
    errors.StackNotFound("prod"),
    errors.StackExists("prod", "default"),
    errors.StackNotEmpty("prod", 3),
    errors.StackLeased("prod", "applier-1", "op-1", "2026-01-01T00:00:00Z"),
    errors.LeaseLost("0123456789abcdef", 7),
    errors.StackMoved("prod", 3, 4),
    errors.StackChanged("prod", "abc", "def"),
    errors.PlanStale("plan-1", "Bucket 'one' is gone"),
    errors.PlatformUnknown("moon", ["lab", "embedded"]),
    errors.OrgUnknown("lab", "größe", "there is none"),
    errors.KindUnsupported("embedded", "Rocket"),
    errors.ResourceOwned([errors.Owned("Bucket", "größe", "resource 1", "1", "0123456789abcdef", "prod")]),
    errors.NameTaken("Bucket", "one", "Bücket 測試 🚀", "Bucket 'two'"),
    errors.DependencyCycle("Task 'a' -> Task 'b' -> Task 'a'"),
    errors.ServiceUnavailable("parser", "127.0.0.1:1", "no connection"),
    errors.ServiceUnavailable("platform", "127.0.0.1:1", "no connection", "embedded"),
    errors.ServiceUnavailable("stack", "127.0.0.1:1", "the disk is full", answered=True),
    errors.ServiceUnavailable("stack", "127.0.0.1:1", "the call ended", status="CANCELLED"),
    errors.OperationNotFound("op-1"),
    errors.OperationUnfinished("prod", "operation-1", "APPLYING"),
    errors.TokenStale("scope", 1, 2),
    errors.RequestIdReused("r-1"),
    errors.PackageEmpty("prod", 3),
    errors.ReplacementRefused([("Bucket", "one", "Bucket 'one' will be deleted")]),
    errors.DeletesExceeded(2, 1, 2, "prod"),
    errors.InUse(["Label 'red' is attached to Bucket 'raw' of stack 'b'"]),
    errors.SharedDiffers(["Label 'red' shares Label 'red' of stack 'b', where color is \"a\" and not \"b\""]),
    errors.RevisionNotFound("prod", 3, "7 to 26"),
    errors.PlanTooLarge(70_000_000, 67_108_864),
    errors.ContentRefused("lab", ["p.yml:1:1: Bucket 'one': no", "Bucket 'two': no"]),
    errors.ValuesMissing("REGION,ZONE", "token"),
    errors.ResourceNotFound("embedded", "default", ["Bucket 'one'", "Task with id '1'"]),
    errors.PlanNotFound("plan-1"),
    errors.PlanUsed("plan-1", "operation-1"),
    errors.PlanExpired("plan-1", "2026-01-01T00:00:00Z"),
    errors.DigestMismatch("plan-1", "abc", "def"),
    errors.RepositoryNotFound("main"),
    errors.RepositoryExists("main"),
    errors.RepositoryInvalid("main", "base/versions.yaml", "FILE_MISSING", "there is no such file"),
    errors.RepositoryUnavailable("main", "it does not answer"),
    errors.PackageNotFound("base", "no repository has base (asked: main)"),
    errors.PackageStack("prod", "has installed packages"),
    errors.PackagePinned("prod", ["base", "web"]),
    errors.RepositoryInUse("main", ["base of prod", "web of 0123456789abcdef"]),
    errors.DefinitionNotFound("Blueprint", "backup"),
    errors.DefinitionChanged("Blueprint", "backup", "sha256:1", ""),
    errors.ActionSetNotFound("backup-x7k2p"),
    errors.ActionSetExists("backup-x7k2p"),
    errors.ActionSetUnfinished("backup-x7k2p", "0123456789abcdef", "APPLYING"),
    errors.ActionSetNotComplete("backup-x7k2p", "failed"),
    errors.ActionSetHasSnapshots("backup-x7k2p", ["sha256:1", "sha256:2"]),
    errors.ArtifactGone("stackBackup", "sha256:1", "delete-backup-x7k2p"),
    errors.SnapshotNotFound("sha256:1"),
    errors.SnapshotCorrupt("sha256:1", "its package does not have the digest sha256:2"),
    errors.LimitReached("applier", 64),
    errors.StackLeased("prod", "", "0123456789abcdef", "", "backup-x7k2p"),
    errors.RangeInvalid("version_range", "latest", 0, "'latest' is no part of a range"),
    errors.Unauthenticated(),
    errors.TooManyCalls("local", 100),
    errors.Internal("r-1"),
]
each_error = pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: str(error.reason))


def test_enum_and_classes_name_the_same_reasons() -> None:
    words = {value.name.removeprefix("REASON_") for value in reason_pb2.Reason.DESCRIPTOR.values} - {"UNSPECIFIED"}

    assert words == set(Reason) == set(ERRORS)
    assert {type(error) for error in EXAMPLES} == set(ERRORS.values()) == set(PkgerError.__subclasses__())


@each_error
async def test_an_error_of_a_unary_call_arrives_as_it_was_raised(error: PkgerError) -> None:
    async def fail(request: object, context: Context) -> stack_pb2.GetStackResponse:
        raise error

    async with peer_of(fail) as peer:
        with pytest.raises(type(error)) as raised:
            await get(peer)

    assert (str(raised.value), raised.value.metadata) == (str(error), error.metadata)
    assert (raised.value.exit_status, raised.value.cli_hint) == (error.exit_status, error.cli_hint)


@each_error
async def test_an_error_of_a_stream_arrives_after_the_messages_before_it(error: PkgerError) -> None:
    async def two_then_fail(request: object, context: Context) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        yield driver_pb2.ListResourcesResponse()
        yield driver_pb2.ListResourcesResponse()
        raise error

    async with peer_of(resources=two_then_fail) as peer:
        answers = list_resources(peer)
        await anext(answers)
        await anext(answers)
        with pytest.raises(type(error)) as raised:
            await anext(answers)

    assert raised.value.metadata == error.metadata


@each_error
def test_a_status_has_one_error_info_and_the_details_that_fit_its_code(error: PkgerError) -> None:
    status = to_status(error)

    info, *rest = status.details
    unpacked = ErrorInfo()
    assert info.Unpack(unpacked)
    assert (unpacked.reason, unpacked.domain, dict(unpacked.metadata)) == (error.reason, DOMAIN, error.metadata)
    code = grpc.StatusCode[error.code]
    by_code = {
        grpc.StatusCode.FAILED_PRECONDITION: [PreconditionFailure.DESCRIPTOR.full_name],
        grpc.StatusCode.INVALID_ARGUMENT: (
            [BadRequest.DESCRIPTOR.full_name] if error.reason is Reason.REQUEST_INVALID else []
        ),
    }.get(code, [])
    resource = [ResourceInfo.DESCRIPTOR.full_name] if error.resource else []
    retry = [RetryInfo.DESCRIPTOR.full_name] if error.retry_seconds(0) is not None else []
    assert [detail.TypeName() for detail in rest] == by_code + resource + retry
    assert (status.code, status.message) == (code.value[0], str(error))


def test_a_status_has_no_credential_of_an_address() -> None:
    status = to_status(errors.ContentRefused("influx", ["url https://hooks.slack.com/services/T0/x is no url"]))
    assert "https://hooks.slack.com/services/(hidden)" in status.message
    assert b"T0/x" not in status.SerializeToString()


def test_a_wrong_request_names_its_field() -> None:
    detail = BadRequest()
    to_status(errors.RequestInvalid("page_size", "must not be negative")).details[1].Unpack(detail)

    (violation,) = detail.field_violations
    assert (violation.field, violation.description) == ("page_size", "must not be negative")


@pytest.mark.parametrize(
    ("error", "resource_type", "name"),
    [
        (errors.StackNotFound("prod"), "pkger.stack.v1.Stack", "prod"),
        (errors.StackExists("prod", "default"), "pkger.stack.v1.Stack", "prod"),
        (errors.RepositoryNotFound("main"), "pkger.stack.v1.Repository", "main"),
        (errors.PlanNotFound("plan-1"), "pkger.model.v1.Plan", "plan-1"),
        (errors.OperationNotFound("operation-1"), "pkger.model.v1.Operation", "operation-1"),
        (errors.PlatformUnknown("moon", ["lab", "embedded"]), "pkger.model.v1.Platform", "moon"),
    ],
)
def test_a_resource_is_named_with_its_type(error: PkgerError, resource_type: str, name: str) -> None:
    detail = ResourceInfo()
    to_status(error).details[1].Unpack(detail)

    assert (detail.resource_type, detail.resource_name) == (resource_type, name)


@each_error
def test_the_key_of_a_resource_is_in_the_metadata(error: PkgerError) -> None:
    if error.resource:
        assert error.metadata[error.resource[1]]


NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def _leased(seconds: float) -> PkgerError:
    """The stack is leased until this number of seconds after noon."""
    expires = (NOON + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    return errors.StackLeased("prod", "applier-1", "op-1", expires)


def _advised(error: PkgerError) -> float:
    """The retry delay that is advised at noon, in seconds."""
    detail = RetryInfo()
    assert to_status(error, lambda: int(NOON.timestamp() * 1e6)).details[-1].Unpack(detail)
    seconds: float = detail.retry_delay.ToMilliseconds() / 1000
    return seconds


@pytest.mark.parametrize(
    ("error", "least", "most"),
    [
        (errors.ServiceUnavailable("parser", "127.0.0.1:1", "no connection"), 1, 1),
        (errors.StackLeased("prod", "applier-1", "op-1", ""), 1, 1),
        (errors.OperationUnfinished("prod", "operation-1", "APPLYING"), 1, 10),
    ],
)
def test_a_retry_is_advised_after_the_time_that_it_takes(error: PkgerError, least: float, most: float) -> None:
    assert least <= _advised(error) <= most


def test_a_retry_is_advised_at_the_end_of_a_lease() -> None:
    assert _advised(_leased(-5)) == 1
    assert _advised(_leased(12.5)) == 12.5
    assert _advised(_leased(3600)) == LONGEST_RETRY_SECONDS


def test_no_retry_is_advised_while_an_operation_waits_for_a_decision() -> None:
    details = to_status(errors.OperationUnfinished("prod", "operation-1", "BLOCKED")).details

    assert [detail.TypeName() for detail in details] == [ErrorInfo.DESCRIPTOR.full_name]


@each_error
def test_a_text_names_fields_and_methods_and_nothing_of_the_command_line(error: PkgerError) -> None:
    assert "--" not in str(error)
    assert "pkger " not in str(error)


LONG = {
    "keys": errors.ValuesMissing(",".join(f"key-{number}" for number in range(5000)), "x" * 9000),
    "names": errors.NameTaken("Label", "a", "é" * 9000, "b" * 9000),
    "cycle": errors.DependencyCycle(" -> ".join(f"Label 'l{number}'" for number in range(400))),
    "one word": errors.StackNotFound("s" * 100_000),
    "not ASCII": errors.RequestInvalid("package", "あ" * 5000),
}


@pytest.mark.parametrize("error", LONG.values(), ids=LONG)
def test_a_long_error_fits_into_the_trailers_of_a_call(error: PkgerError) -> None:
    status = to_status(error)
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.metadata.keys()) == (error.reason, error.metadata.keys())
    assert status.message.startswith(str(error)[:100])
    escaped = quote(status.message, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
    assert len(escaped) + 4 * status.ByteSize() // 3 <= MOST_TRAILER_BYTES
