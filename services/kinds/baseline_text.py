"""Baselines as the text of an attachment: one line of JSON for each, sorted by key."""

from collections.abc import Iterable

import orjson

from services.core.model import Baseline, Key, Reference


def baselines_text(baselines: Iterable[Baseline]) -> str:
    """Write *baselines*, none of which has missing labels."""
    lines = [
        orjson.dumps([*each.key, each.spec, [[one.pointer, one.kind, one.id] for one in each.references]]).decode()
        for each in sorted(baselines, key=lambda each: each.key)
    ]
    return "".join(f"{line}\n" for line in lines)


def read_baselines(text: str) -> list[Baseline]:
    """Read what ``baselines_text`` wrote."""
    # Not splitlines: other line breaks may stand unescaped in JSON text.
    lines = [orjson.loads(line) for line in text.split("\n")[:-1]]
    return [
        Baseline(Key(kind, name), spec, tuple(Reference(*each) for each in references))
        for kind, name, spec, references in lines
    ]
