"""Writes documents, such as the objects of a package, as text that all readers of YAML or JSON read alike."""

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import yaml

from services.syntax.hidden_characters import HIDDEN_CHARACTER

Document = Mapping[str, Any]
"""A tree of JSON values; its mappings are written in their order."""

_WIDTH = 2**20
"""Long enough that PyYAML never breaks a line."""

_TEXT_TAG, _LIST_TAG, _MAPPING_TAG = (f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map"))
_TAGS = {yaml.ScalarNode: _TEXT_TAG, yaml.SequenceNode: _LIST_TAG, yaml.MappingNode: _MAPPING_TAG}

_WORDS = frozenset(
    ("", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "=", "<<", ".inf", "+.inf", "-.inf", ".nan")
)
"""Texts, in lower case, that some version of YAML does not read as text unless they are quoted."""

_NUMBER_LIKE = re.compile(r"[-+.]*[0-9][-+0-9a-fA-FoOxX_.,:tTzZ ]*")
"""Everything that some version of YAML reads as a number, a date or a time, and more that looks like one."""

_HARD = re.compile(r"\t| (?=\n|$)|[\U00010000-\U0010ffff]", re.MULTILINE)
"""Characters that keep PyYAML from writing a text as a block, although YAML allows them there."""

_PRIVATE = range(0xE000, 0xF900)
"""The private characters of Unicode, which stand in for the characters of ``_HARD``."""

_PRIVATE_CHARACTER = re.compile("[\ue000-\uf8ff]")
_HARD_START = re.compile(r"\t| +(\n|$)")
"""The beginning of a text from which a block scalar cannot infer its indentation."""


class Writer(Protocol):
    """
    Writes documents one by one, so that only the text of a large package is kept in memory.

    Text that YAML 1.1 or 1.2 would read as another type is quoted; texts of several lines are blocks. In YAML, a text
    with hidden characters is quoted and has escapes in their place: a reader of the file sees them.
    """

    def document(self, document: Document) -> str:
        """The text of one document."""

    def joined(self, documents: Sequence[str]) -> str:
        """The text that has all *documents*, each as ``document`` wrote it."""


@dataclass(frozen=True, slots=True)
class YamlWriter:
    """A stream of YAML documents; *comment* is its first line, without ``#``; empty: none."""

    comment: str = ""

    def document(self, document: Document) -> str:
        """The text of one document."""
        return _yaml(document)

    def joined(self, documents: Sequence[str]) -> str:
        """The stream."""
        return (f"# {self.comment}\n" if self.comment else "") + "---\n".join(documents)


@dataclass(frozen=True, slots=True)
class JsonWriter:
    """One JSON array, indented with tabs."""

    def document(self, document: Document) -> str:
        """The text of one item."""
        # Strings have no line breaks in JSON, so all of them are between items.
        return "\t" + json.dumps(document, indent="\t", ensure_ascii=False).replace("\n", "\n\t")

    def joined(self, documents: Sequence[str]) -> str:
        """The array."""
        return "[\n" + ",\n".join(documents) + "\n]\n" if documents else "[]\n"


def _yaml(document: Document) -> str:
    stream = io.StringIO()
    dumper = _Dumper(stream, allow_unicode=True, width=_WIDTH, default_flow_style=False, sort_keys=False)
    dumper.stand_ins = _StandIns(document)
    try:
        dumper.open()
        dumper.represent(document)
        dumper.close()
    finally:
        dumper.dispose()
    return _with_escapes(dumper.stand_ins.undone(stream.getvalue()))


def _with_escapes(written: str) -> str:
    """*written* with escapes for the hidden characters, all of which are in texts in double quotes."""
    return HIDDEN_CHARACTER.sub(_escape, written)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    # Two escaped surrogates, as in JSON, are two characters for readers of YAML.
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


class _StandIns:
    """
    Private characters that replace others while PyYAML writes one document.

    libyaml writes texts with tabs, with spaces at the end of a line or with characters beyond U+FFFF as quoted lines.
    Queries and configurations have such texts, and should be readable.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._taken: dict[str, str] = {}
        self._is_possible: bool | None = None

    def easy(self, text: str) -> str:
        """*text* in a form that can be written as a block; unchanged if there is none."""
        if not _HARD.search(text) or not self._may_begin() or _HARD_START.match(text):
            return text
        return _HARD.sub(lambda match: self._stand_in(match[0]), text)

    def undone(self, written: str) -> str:
        """*written* with the original characters restored."""
        if not self._taken:
            return written
        return written.translate({ord(stand_in): character for character, stand_in in self._taken.items()})

    def _may_begin(self) -> bool:
        # Private characters of the document itself would be indistinguishable from stand-ins.
        if self._is_possible is None:
            self._is_possible = not _PRIVATE_CHARACTER.search(json.dumps(self._document, ensure_ascii=False))
        return self._is_possible and len(self._taken) < len(_PRIVATE)

    def _stand_in(self, character: str) -> str:
        if character not in self._taken and len(self._taken) == len(_PRIVATE):
            return character
        return self._taken.setdefault(character, chr(_PRIVATE[len(self._taken)]))


class _Dumper(yaml.CSafeDumper):
    """
    Decides itself which scalars are quoted.

    All scalars have the tag of texts, so the emitter writes no tags and no quotes of its own. Text that would be read
    as another type requests quotes; numbers, booleans and null do not.
    """

    stand_ins: _StandIns

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """The tag of all nodes of *kind*."""
        return _TAGS[kind]

    def represent_data(self, data: Any) -> yaml.Node:
        """A node for *data*; never an alias."""
        if isinstance(data, str):
            return self._text(data)
        if isinstance(data, dict):
            pairs = [(self._text(key), self.represent_data(value)) for key, value in data.items()]
            return yaml.MappingNode(_MAPPING_TAG, pairs, flow_style=not pairs)
        if isinstance(data, list | tuple):
            return yaml.SequenceNode(_LIST_TAG, [self.represent_data(item) for item in data], flow_style=not data)
        # JSON is valid YAML, except for floats such as 1e+16, which need a point in YAML 1.1.
        return yaml.ScalarNode(_TEXT_TAG, _number(data) if isinstance(data, float) else json.dumps(data))

    def _text(self, text: str) -> yaml.ScalarNode:
        if HIDDEN_CHARACTER.search(text):
            # libyaml escapes some of them itself, ``_with_escapes`` the others.
            return yaml.ScalarNode(_TEXT_TAG, text, style='"')
        if "\n" in text:
            return yaml.ScalarNode(_TEXT_TAG, self.stand_ins.easy(text), style="|")
        return yaml.ScalarNode(_TEXT_TAG, text, style='"' if _is_ambiguous(text) else None)


@lru_cache(maxsize=4096)
def _is_ambiguous(text: str) -> bool:
    """Whether some version of YAML reads *text* as another type; cached, as keys repeat."""
    return text.lower() in _WORDS or bool(_NUMBER_LIKE.fullmatch(text))


def _number(number: float) -> str:
    text = repr(number)
    return text.replace("e", ".0e", 1) if "." not in text and "e" in text else text
