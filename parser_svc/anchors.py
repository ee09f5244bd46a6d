"""YAML anchors and aliases, and what repeating costs (an alias is short, what it stands for need not be)."""

from typing import Any, NamedTuple

from parser_svc.bounds import Usage
from services.core.errors import SourceUndecodable


class _Anchored(NamedTuple):
    value: Any
    nodes: int
    characters: int
    depth: int


class Anchors:
    """
    The anchored values of the stream being read; as in the reference, later documents may use those of earlier ones.

    Values are shared, not copied: nobody may change a tree that was read.
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
        What the alias *name* stands for.

        Args:
            name: The anchor.
            mark: Where the alias stands.
            depth: How deep the alias stands.

        Raises:
            SourceUndecodable: There is no such anchor before the alias, or the alias is inside of what it names.
            SourceTooLarge: Too much is repeated.
        """
        if name in self._open or name not in self._values:
            problem = "this alias is inside of what it names" if name in self._open else _UNKNOWN
            raise SourceUndecodable(self._source, problem, mark.line + 1, mark.column + 1)
        anchored = self._measured.get(name) or self._measure(name)
        self._usage.take_nodes(self._source, anchored.nodes)
        self._usage.take_repeated_text(self._source, anchored.characters)
        self._usage.check_depth(self._source, depth + anchored.depth)
        return anchored.value

    def _measure(self, name: str) -> _Anchored:
        """Count what the anchor holds, but no further than any alias may repeat."""
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


# The name may be a text that begins with an asterisk and lacks its quotes, such as a password: it is not repeated.
_UNKNOWN = "there is no anchor of this name before the alias; put a text that begins with * in quotes"
