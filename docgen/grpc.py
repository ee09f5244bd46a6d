"""The gRPC reference: one page for each package of the contracts, from the comments of the protos."""

from collections.abc import Iterator, Mapping

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
)

from services.gateway.transcoding.comments import read_comments, read_contracts

_Field = FieldDescriptorProto


def grpc_pages() -> dict[str, str]:
    """The pages by package, such as ``pkger.stack.v1``, sorted."""
    comments = read_comments()
    by_package: dict[str, list[FileDescriptorProto]] = {}
    for file in read_contracts().file:
        if file.package.startswith("pkger."):
            by_package.setdefault(file.package, []).append(file)
    return {package: _page(package, files, comments) for package, files in sorted(by_package.items())}


def _page(package: str, files: list[FileDescriptorProto], comments: Mapping[str, str]) -> str:
    return "\n".join([f"# {package}", "", *(line for file in files for line in _file(file, comments))])


def _file(file: FileDescriptorProto, comments: Mapping[str, str]) -> Iterator[str]:
    for service in file.service:
        name = f"{file.package}.{service.name}"
        yield from (f"## {service.name}", "", comments.get(name, ""), "")
        for method in service.method:
            yield from _method(name, method, comments)
    for message in file.message_type:
        yield from _message(f"{file.package}.{message.name}", message.name, message, comments)
    for enum in file.enum_type:
        yield from _enum(f"{file.package}.{enum.name}", enum, comments)


def _method(service: str, method: MethodDescriptorProto, comments: Mapping[str, str]) -> Iterator[str]:
    request = f"{'stream of ' if method.client_streaming else ''}{_link(method.input_type)}"
    response = f"{'stream of ' if method.server_streaming else ''}{_link(method.output_type)}"
    signature = f"{request} → {response}"
    yield from (f"### {method.name}", "", signature, "", comments.get(f"{service}.{method.name}", ""), "")


def _message(full: str, shown: str, message: DescriptorProto, comments: Mapping[str, str]) -> Iterator[str]:
    yield from (f"## {shown}", "", comments.get(full, ""), "")
    entries = {each.name: each for each in message.nested_type if each.options.map_entry}
    if message.field:
        yield from ("| field | number | type | |", "|---|---|---|---|")
        for field in message.field:
            text = _cell(comments.get(f"{full}.{field.name}", ""))
            yield f"| `{field.name}` | {field.number} | {_type(field, entries)} | {text} |"
        yield ""
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from _message(f"{full}.{nested.name}", f"{shown}.{nested.name}", nested, comments)


def _enum(full: str, enum: EnumDescriptorProto, comments: Mapping[str, str]) -> Iterator[str]:
    yield from (f"## {enum.name}", "", comments.get(full, ""), "", "| value | number | |", "|---|---|---|")
    for value in enum.value:
        yield f"| `{value.name}` | {value.number} | {_cell(comments.get(f'{full}.{value.name}', ''))} |"
    yield ""


def _type(field: FieldDescriptorProto, entries: Mapping[str, DescriptorProto]) -> str:
    if entry := entries.get(field.type_name.rpartition(".")[2]):
        key, value = entry.field
        return f"map of {_plain_type(key)} to {_plain_type(value)}"
    return f"{'repeated ' if field.label == _Field.LABEL_REPEATED else ''}{_plain_type(field)}"


def _plain_type(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return _link(field.type_name)
    return _Field.Type.Name(field.type).removeprefix("TYPE_").lower()


def _link(type_name: str) -> str:
    """A type as a link to its description; types of other packages, such as Timestamp, by name."""
    full = type_name.removeprefix(".")
    package, _, name = full.rpartition(".")
    if not package.startswith("pkger."):
        return f"`{full}`"
    # A nested message is on the page of its package, under its full name within the package.
    parts = full.split(".")
    package, name = ".".join(parts[:3]), ".".join(parts[3:])
    return f"[{name}]({package}.md#{name.lower().replace('.', '')})"


def _cell(text: str) -> str:
    return text.replace("\n\n", "<br>").replace("|", "\\|")
