"""Reads a YAML stream with the help of a cache: a document that was parsed before is not read again."""

import re
from collections.abc import Iterable, Sequence
from copy import copy
from hashlib import blake2b
from itertools import accumulate, islice, pairwise, takewhile
from sys import intern
from typing import NamedTuple

from parser_svc.document_cache import CachedObject, DocumentCache
from parser_svc.envelope import RawObject, from_documents
from services.core.errors import SourceTooLarge, SourceUndecodable
from services.core.model import Location, Object, Spec
from services.syntax.places import Pointer
from services.syntax.usage import Usage
from services.syntax.yaml_reader import Stream, read_stream

_NEXT_DOCUMENT = re.compile(r"\n(?=---(?:[ \t\n]|\Z))")
"""A line break before ``---`` where libyaml starts a document."""

_UNSURE = ("\r", "\x85", "\u2028", "\u2029", "\ufeff", "\n...", "\n%")
"""Other line breaks, document ends, and directives: a text with these is not split here, but by libyaml."""

_UNSURE_FIRST = ("...", "%")

_NO_CONTENT = re.compile(r"(?: *(?:#[^\n]*)?(?:\n|\Z))*")
"""Comments before the first ``---``; they are no document."""


class KnownObject(NamedTuple):
    """
    The object of a document that was parsed before, in place of a ``RawObject``.

    Attributes:
        source: Position of its source.
        pointer: The pointer to it in that source.
        location: Its first character.
        cached: The object.
        text: The document.
    """

    source: int
    pointer: Pointer
    location: Location
    cached: CachedObject
    text: str

    @property
    def kind(self) -> str:
        """The kind."""
        return self.cached.key.kind

    @property
    def api_version(self) -> str:
        """As written."""
        return self.cached.api_version

    def pointer_to(self, within: Pointer) -> Pointer:
        """The pointer in the source to the value at *within* in the object."""
        return (*self.pointer, *within)

    def object(self) -> Object:
        """The object, with the labels that it had when it was cached."""
        cached = self.cached
        # The spec is a new value each time: it caches its parsed value, which the bound of the cache does not count.
        spec = Spec(cached.spec, cached.display_name)
        return Object(
            cached.key,
            cached.api_version,
            spec,
            cached.associations,
            location=self.location,
            lifecycle=cached.lifecycle,
        )

    def read(self) -> RawObject:
        """Read the object from its document."""
        stream = read_stream(self.location.source, self.text)
        [raw] = from_documents(self.source, self.location.source, self.text, stream.documents, stream.starts)
        return raw._replace(pointer=self.pointer, location=self.location)


class _Part(NamedTuple):
    """
    A document of a stream, before it is read.

    Attributes:
        text: Its text.
        line: The number of lines before it.
        digest: The digest of its text and of the terms that its object depends on.
        cached: Its object; None: not in the cache.
    """

    text: str
    line: int
    digest: bytes
    cached: CachedObject | None


class KnownDocuments:
    """The documents of one package that are in a cache or will be added to it."""

    def __init__(self, cache: DocumentCache, *terms: object) -> None:
        """
        Args:
            cache: The cache.
            terms: The facts that an object depends on beside the text of its document and the labels of its package.
        """
        self._cache = cache
        self._terms = blake2b(repr(terms).encode(), digest_size=32).digest()
        # By position of the source and of the document: the document that was read, and its number of values.
        self._read: dict[int, dict[str | int, tuple[_Part, int]]] = {}

    def read(self, source: int, name: str, text: str, usage: Usage) -> list[RawObject | KnownObject]:
        """
        Read a stream; if its documents cannot be read apart with certainty, it is read as a whole.

        Args:
            source: Position of the source.
            name: Its name.
            text: The stream.
            usage: How much of its bounds the package has used.

        Raises:
            SourceUndecodable: The stream is no YAML, or a document has the wrong type.
            SourceTooLarge: The stream exceeds a bound.
        """
        parts = self._parts(text, usage.objects_left)
        if any(part.cached for part in parts):
            attempt = copy(usage)
            try:
                if (objects := self._read_parts(source, name, parts, attempt)) is not None:
                    usage.take_over(attempt)
                    return objects
            except (SourceUndecodable, SourceTooLarge):
                # An error has a place in the stream, and the first one counts: so the stream is read as a whole.
                pass
            self._read.pop(source, None)
        stream = read_stream(name, text, usage)
        objects = [*from_documents(source, name, text, stream.documents, stream.starts)]
        self._record(source, 0, parts, stream)
        return objects

    def keep(self, objects: Iterable[tuple[RawObject, Object]]) -> None:
        """Cache *objects*, which depend only on their documents, the terms, and the presence of their labels."""
        entries = []
        for raw, item in objects:
            if read := self._read.get(raw.source, {}).get(raw.pointer[0]):
                part, nodes = read
                line, column = raw.location.line - part.line, raw.location.column
                version, spec = intern(item.api_version), item.spec
                place = (line, column)
                kept = CachedObject(
                    *(item.key, version, spec.display_name, spec.text, item.associations, nodes), *place, item.lifecycle
                )
                entries.append((part.digest, kept))
        self._cache.keep(entries)

    def _parts(self, text: str, most: int) -> list[_Part]:
        """The documents of a stream; none if there are more than *most*, or only libyaml can find where they begin."""
        if any(sign in text for sign in _UNSURE) or text.startswith(_UNSURE_FIRST):
            return []
        ends = [match.end() for match in islice(_NEXT_DOCUMENT.finditer(text), most + 1)]
        if len(ends) > most:
            return []
        texts = [text[start:end] for start, end in pairwise((0, *ends, len(text)))]
        if texts[1:] and _NO_CONTENT.fullmatch(texts[0]):
            texts[:2] = [texts[0] + texts[1]]
        lines = accumulate((text.count("\n") for text in texts), initial=0)
        digests = [blake2b(text.encode(), digest_size=32, key=self._terms).digest() for text in texts]
        return list(map(_Part, texts, lines, digests, self._cache.find(digests)))

    def _read_parts(
        self, source: int, name: str, parts: Sequence[_Part], usage: Usage
    ) -> list[RawObject | KnownObject] | None:
        """
        Read the documents that are not in the cache, adjacent ones as one stream.

        Returns:
            All objects; None: documents cannot be read apart with certainty.
        """
        objects: list[RawObject | KnownObject] = []
        first = 0
        while first < len(parts):
            part = parts[first]
            if part.cached:
                usage.take_objects(name, 1)
                usage.take_nodes(name, part.cached.nodes)
                place = Location(name, part.line + part.cached.line, part.cached.column)
                objects.append(KnownObject(source, (first,), place, part.cached, part.text))
                first += 1
                continue
            run = list(takewhile(_is_unknown, islice(parts, first, None)))
            text = "".join(part.text for part in run)
            stream = read_stream(name, text, usage)
            if not self._record(source, first, run, stream):
                return None
            for raw in from_documents(source, name, text, stream.documents, stream.starts):
                place = Location(name, part.line + raw.location.line, raw.location.column)
                objects.append(raw._replace(pointer=(first + int(raw.pointer[0]),), location=place))
            first += len(run)
        return objects

    def _record(self, source: int, first: int, parts: Sequence[_Part], stream: Stream) -> bool:
        """
        Record the documents of *parts*, which begin at position *first*.

        Returns:
            Whether each part is certainly one document; else nothing is recorded.
        """
        if stream.has_anchors or len(stream.documents) != len(parts):
            return False
        self._read.setdefault(source, {}).update(enumerate(zip(parts, stream.nodes, strict=True), first))
        return True


def _is_unknown(part: _Part) -> bool:
    return part.cached is None
