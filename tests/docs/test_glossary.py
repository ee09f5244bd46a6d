"""docs/glossary.md has all words in the names of messages, enums, services and RPCs of the contracts."""

import re
from collections.abc import Iterator
from itertools import pairwise

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "glossary.md").read_text()


def words(text: str) -> set[str]:
    """The words of *text* in lower case, without text in parentheses."""
    return set(re.findall(r"[a-z]+", re.sub(r"\(.*?\)", "", text).lower()))


PLAIN = words(
    "abandon abandoned accepted action advance after all argument aspect basic begin begun body cancel change check "
    "class content counts create declaration delete describe direction done edit ended env failed failure field file "
    "filter find finding finish finished fix folder get header id keep left list listing location mapping mark match "
    "mode mutate name named nameless new options orgs out override part path patterns planned position progress put "
    "read reason ref rejection related remove rename render renew report request response result retrying rule run "
    "same search sent service severity start started state status stop stopping store stored unread update urls value "
    "values verdict view watch write written "
)
"""Plain English words, and words of every gRPC contract."""

REPLACED = words(
    "agree away backend before book ending fault fingerprint foreign happening hash have hold inquire insist job "
    "latecomer listen lock lost mishap mistake news note notes overlook patience piece place plugin provider remainder "
    "remember rest seen somebody sort stranger stubborn stuck tag tell template thing title too trial type uncertain "
    "wave wish wished word"
)
"""Words that the contracts do not use: the glossary has another word for the same thing."""


def rows() -> list[list[str]]:
    """The cells of the rows of the table."""
    lines = [line for line in PAGE.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def names() -> Iterator[str]:
    """Names of all messages, enums, services and RPCs of pkger."""
    image = FileDescriptorSet.FromString((ROOT / "protos" / "image.binpb").read_bytes())
    for file in image.file:
        if file.package.startswith("pkger."):
            yield from _names_in(file)


def _names_in(scope: FileDescriptorProto | DescriptorProto) -> Iterator[str]:
    messages = scope.message_type if isinstance(scope, FileDescriptorProto) else scope.nested_type
    for message in messages:
        if not message.options.map_entry:
            yield message.name
            yield from _names_in(message)
    for enum in scope.enum_type:
        yield enum.name
    if isinstance(scope, FileDescriptorProto):
        for service in scope.service:
            yield service.name
            yield from (method.name for method in service.method)


def parts(name: str) -> list[str]:
    """The words of a name in camel case."""
    return [part.lower() for part in re.findall(r"[A-Z][a-z0-9]*", name)]


def is_known(word: str, known: set[str]) -> bool:
    """Whether *word*, or a word of which it is a plural, a past tense or a noun, is in *known*."""
    endings = {"s": "", "ies": "y", "ed": "", "d": "", "ped": "", "red": "r", "ion": "e"}
    return word in known or any(
        word.endswith(ending) and word.removesuffix(ending) + instead in known for ending, instead in endings.items()
    )


def test_names_of_the_contracts_are_made_of_words_of_the_glossary() -> None:
    known = {word for row in rows() for word in words(row[0])} | PLAIN
    unknown = {name: [part for part in parts(name) if not is_known(part, known)] for name in names()}
    assert {name: missing for name, missing in unknown.items() if missing} == {}


def test_no_name_of_the_contracts_has_a_word_that_the_glossary_replaces() -> None:
    assert {name for name in names() if REPLACED & set(parts(name))} == set()


def test_no_term_of_the_glossary_is_a_replaced_word() -> None:
    assert REPLACED & {word for row in rows() for word in words(row[0])} == set()


def test_plain_words_are_in_use() -> None:
    """A word that no name uses any more is removed from the lists of this test."""
    used = {part for name in names() for part in parts(name)}
    assert sorted(PLAIN - used) == []


def test_rows_are_complete_and_in_alphabetical_order() -> None:
    for row in rows():
        assert len(row) == 2, row
        assert row[0], row
        assert row[1], row
    order = [row[0].casefold() for row in rows()]
    assert [(first, second) for first, second in pairwise(order) if first > second] == []
