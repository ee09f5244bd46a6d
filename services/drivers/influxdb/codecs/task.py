"""Tasks."""

import re
from typing import Any

from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, Refused
from services.drivers.influxdb.codecs.normal import named, normalised, refuse_negative, refuse_parts_of_seconds
from services.drivers.influxdb.codecs.scripts import refuse_faulty
from services.drivers.influxdb.codecs.task_script import counts_in, further_options, query_in, written
from services.kinds.format.durations import calendar_duration

_KIND = "Task"

_MOST = {"concurrency": 100, "retry": 10}
"""The greatest values of options that the server accepts."""

_CRON = re.compile(r"@[a-z]+( \S+)?|[-0-9A-Za-z*/,?#]+(\s+[-0-9A-Za-z*/,?#]+){4,6}")


def _prepare(content: Content, _references: References) -> dict[str, Any]:
    spec = named(_KIND, content)
    if bool(spec["cron"]) == bool(spec["every"]):
        raise Refused("a task has either cron or every; write one of them")
    if spec["cron"] and not _CRON.fullmatch(spec["cron"].strip()):
        raise Refused(
            f"cron must be five fields such as 0 8 * * 1, or a shorthand such as @daily; found {spec['cron'][:60]!r}"
        )
    refuse_negative(_KIND, spec, "every")
    for key in ("every", "offset"):
        refuse_parts_of_seconds(_KIND, spec, key)
    if calendar_duration(spec["offset"]):
        raise Refused(f"offset of a {_KIND} cannot have months or years on this platform; found {spec['offset']!r}")
    if not spec["query"]:
        raise Refused("a task needs a query that is not empty")
    refuse_faulty(_KIND, spec["query"])
    for option, count in counts_in(spec["query"]).items():
        if not (isinstance(count.value, int) and 1 <= count.value <= _MOST[option] and count.value_type == "integer"):
            raise Refused(f"the option {option} of a {_KIND} must be a whole number from 1 to {_MOST[option]}")
    if _query(query_in(written(spec)), spec["name"]) != spec["query"]:
        raise Refused("the query of a task is faulty: its statements cannot be separated")
    return spec


def _write(spec: Content, _references: References, live: Body | None) -> dict[str, Any]:
    # Name and schedule are sent in the script only: as separate fields they make the server rewrite the script.
    return {
        "flux": written(spec, live["flux"] if live else ""),
        "status": spec["status"],
        "description": spec["description"],
    }


def _read(live: Body) -> dict[str, Any]:
    texts = ("name", "description", "status", "every", "cron", "offset")
    content = {key: live.get(key) or "" for key in texts}
    return normalised(_KIND, {**content, "query": query_in(live["flux"])})


def _query(text: str, name: str) -> str:
    """A query as the parser normalises it."""
    query: str = normalised(_KIND, {"name": name, "query": text})["query"]
    return query


def _unexpressed(live: Body) -> list[str]:
    return [f"{name} of option task" for name in further_options(live["flux"])]


CODEC = Codec(_KIND, "tasks", _prepare, _write, _read, unexpressed=_unexpressed)
