"""Data on standard output: documents as JSON or YAML."""

from collections.abc import Iterable
from typing import Any

import orjson

from services.cli.common import caller
from services.cli.output.escapes import escaped


def text_document(document: Any, output: str, one_line: bool = False) -> str:
    """
    *document* as text.

    Args:
        document: JSON data.
        output: "json" or "yaml".
        one_line: JSON without indentation; YAML begins with ``---``, as one document of several.
    """
    if output == "yaml":
        return ("---\n" if one_line else "") + _yaml(document)
    # Escaped characters do not change the value of a JSON text.
    return escaped(orjson.dumps(document, option=0 if one_line else orjson.OPT_INDENT_2).decode())


def _yaml(document: Any) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True, width=100)
    if escaped(text) != text:
        # Only quoted scalars can hold escapes; with allow_unicode=False, PyYAML quotes all that is not ASCII.
        text = yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=False, width=100)
    return text.removesuffix("...\n").rstrip("\n")


def print_document(document: Any, output: str) -> None:
    """Print one document."""
    _print(text_document(document, output))


def print_records(documents: Iterable[Any], output: str) -> None:
    """Print each of *documents* as it arrives: one JSON object a line, or YAML documents of one stream."""
    for document in documents:
        _print(text_document(document, output, one_line=True))


def _print(text: str) -> None:
    # Not through a console: documents have no colours, and may be large.
    print(text, file=caller().stdout, flush=True)
