"""YAML anchors and aliases, and the size of the values that aliases repeat, which may be large."""

from typing import Any, NamedTuple

from services.core.errors import SourceUndecodable
from services.syntax.usage import Usage


class _Anchored(NamedTuple):
    value: Any
    nodes: int
    characters: int
    depth: int


class Anchors:
    """
    The anchored values of the stream that is being read; documents may use anchors of earlier ones, as in InfluxDB.

    Values are shared, not copied: a tree that was read must not be changed.
    """

    def __init__(self, source: str, usage: Usage) -> None:
        self._source = source
        self._usage = usage
        self._values: dict[str, Any] = {}
        self._measured: dict[str, _Anchored] = {}
        self._open: set[str] = set()

    @property
    def are_used(self) -> bool:
        """Whether any value has an anchor."""
        return bool(self._values)

    def open(self, name: str) -> None:
        """A list or mapping with the anchor *name* begins."""
        self._open.add(name)

    def close(self, name: str, value: Any) -> None:
        """The value with the anchor *name* is read."""
        self._open.discard(name)
        self._values[name] = value
        self._measured.pop(name, None)

    def value(self, name: str, mark: Any, depth: int) -> Any:
        """
        The value of the alias *name*.

        Args:
            name: The anchor.
            mark: The position of the alias.
            depth: The nesting depth of the alias.

        Raises:
            SourceUndecodable: There is no such anchor before the alias, or the alias is inside the value that it names.
            SourceTooLarge: The repeated values exceed a bound.
        """
        if name in self._open or name not in self._values:
            problem = "this alias is inside the value that it names" if name in self._open else _UNKNOWN
            raise SourceUndecodable(self._source, problem, mark.line + 1, mark.column + 1)
        anchored = self._measured.get(name) or self._measure(name)
        self._usage.take_nodes(self._source, anchored.nodes)
        self._usage.take_repeated_text(self._source, anchored.characters)
        self._usage.check_depth(self._source, depth + anchored.depth)
        return anchored.value

    def _measure(self, name: str) -> _Anchored:
        """Measure the value of an anchor; stop beyond the number of values that an alias may repeat."""
        nodes = characters = depth = 0
        most = self._usage.bounds.nodes
        level = [self._values[name]]
        while level and nodes <= most:
            nodes += len(level)
            below: list[Any] = []
            for value in level:
                if isinstance(value, str):
                    characters += len(value)
                elif isinstance(value, dict):
                    characters += sum(map(len, value))
                    below.extend(value.values())
                elif isinstance(value, list):
                    below.extend(value)
                if nodes + len(below) > most:
                    nodes += len(below)
                    break
            depth += any(isinstance(value, dict | list) for value in level)
            level = below
        self._measured[name] = anchored = _Anchored(self._values[name], nodes, characters, depth)
        return anchored


# The message does not have the name, which may be a text without quotes that begins with *, such as a password.
_UNKNOWN = "there is no anchor of this name before the alias; put a text that begins with * in quotes"
