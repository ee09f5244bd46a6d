"""Generates packages that resemble real ones: buckets, variables, tasks and dashboards, with queries and labels."""

import random
from collections.abc import Callable, Sequence
from enum import Enum
from textwrap import indent

_FIELDS = ("usage_user", "usage_system", "used_percent", "io_time", "bytes_recv", "errors", "queue_depth", "latency")
_PLACES = ("berlin", "lagos", "lima", "osaka", "oslo", "perth", "quito", "turin")
_THINGS = ("cpu", "disk", "gateway", "kafka", "mem", "net", "nginx", "postgres", "redis", "turbine")


class Mix(Enum):
    """
    The kinds of objects in a package.

    MIXED: of 20 objects, 3 are labels, 6 buckets, 4 variables, 4 tasks and 3 dashboards with two to four charts; 600
    bytes an object on average. SMALL: labels and buckets only, 300 bytes an object on average.
    """

    MIXED = "mixed"
    SMALL = "small"


def package_text(count: int, mix: Mix = Mix.MIXED, seed: int = 0) -> str:
    """
    Write a package of *count* objects as a YAML stream; all of them except labels have one to three labels.

    Args:
        count: Number of objects; at least one.
        mix: Their kinds.
        seed: The seed of names, colours, queries and associations; equal seeds make equal text.
    """
    chance = random.Random(seed)
    shares = _SHARES[mix]
    write = [shares[position % len(shares)] for position in range(count)]
    labels = [f"label-{number}" for number, make in enumerate(write) if make is _label]
    return "---\n".join(make(number, chance, labels) for number, make in enumerate(write))


def refused_object() -> str:
    """An object that breaks no rule of packages, and that the embedded platform rejects when it is created."""
    return _object("Bucket", "zz-refused", "_reserved", "description: A name that the platform keeps for itself\n", ())


def _label(number: int, chance: random.Random, labels: Sequence[str]) -> str:
    spec = f"""\
color: "#{chance.randrange(2**24):06x}"
description: All that the {chance.choice(_THINGS)} team of {chance.choice(_PLACES)} looks after
"""
    return _object("Label", f"label-{number}", _name(number, chance), spec, ())


def _bucket(number: int, chance: random.Random, labels: Sequence[str]) -> str:
    spec = f"""\
description: Readings of {chance.choice(_THINGS)} in {chance.choice(_PLACES)}, as they come in
retentionRules:
  - type: expire
    everySeconds: {86400 * chance.randint(1, 365)}
"""
    return _object("Bucket", f"bucket-{number}", _name(number, chance), spec, _some(labels, chance))


def _variable(number: int, chance: random.Random, labels: Sequence[str]) -> str:
    if chance.random() < 0.5:
        values = "".join(f"  {place}: {place}-{number}\n" for place in chance.sample(_PLACES, 4))
        spec = f"type: map\nselected:\n  - {values.split(':')[0].strip()}\nvalues:\n{values}"
    else:
        spec = f"""\
type: query
language: flux
query: |
  import "influxdata/influxdb/schema"
  schema.tagValues(bucket: "{chance.choice(_PLACES)}", tag: "{chance.choice(_THINGS)}")
"""
    return _object("Variable", f"variable-{number}", _name(number, chance), spec, _some(labels, chance))


def _task(number: int, chance: random.Random, labels: Sequence[str]) -> str:
    spec = f"""\
description: Sums up {chance.choice(_THINGS)} once in a while
every: {chance.choice(("10m", "1h", "6h", "24h"))}
offset: {chance.randint(1, 9)}m
query: |
{indent(_query(chance), "  ")}    |> to(bucket: "{chance.choice(_PLACES)}_hourly")
"""
    return _object("Task", f"task-{number}", _name(number, chance), spec, _some(labels, chance))


def _dashboard(number: int, chance: random.Random, labels: Sequence[str]) -> str:
    charts = "".join(_chart(row, chance) for row in range(chance.randint(2, 4)))
    spec = f"description: What {chance.choice(_PLACES)} looks at in the morning\ncharts:\n{indent(charts, '  ')}"
    return _object("Dashboard", f"dashboard-{number}", _name(number, chance), spec, _some(labels, chance))


def _chart(row: int, chance: random.Random) -> str:
    return f"""\
- kind: Xy
  name: {chance.choice(_THINGS).capitalize()} of the last days
  xPos: 0
  yPos: {row * 4}
  width: {chance.randint(4, 12)}
  height: 4
  geom: line
  queries:
    - query: |
{indent(_query(chance), "        ")}\
  axes:
    - name: x
      scale: linear
    - name: y
      scale: linear
      base: "10"
      suffix: "{chance.choice(("%", " B", " s", " /s"))}"
  colors:
    - name: laser
      type: scale
      hex: "#{chance.randrange(2**24):06x}"
"""


def _query(chance: random.Random) -> str:
    return f"""\
from(bucket: "{chance.choice(_PLACES)}")
  |> range(start: -{chance.randint(1, 30)}d)
  |> filter(fn: (r) => r._measurement == "{chance.choice(_THINGS)}" and r._field == "{chance.choice(_FIELDS)}")
  |> aggregateWindow(every: {chance.randint(1, 60)}m, fn: mean)
"""


def _object(kind: str, key: str, name: str, spec: str, labels: Sequence[str]) -> str:
    if labels:
        spec += "associations:\n" + "".join(f"  - kind: Label\n    name: {label}\n" for label in labels)
    return f"""\
apiVersion: influxdata.com/v2alpha1
kind: {kind}
metadata:
  name: {key}
spec:
  name: {name}
{indent(spec, "  ")}"""


def _name(number: int, chance: random.Random) -> str:
    return f"{chance.choice(_PLACES)} {chance.choice(_THINGS)} {number}"


def _some(labels: Sequence[str], chance: random.Random) -> list[str]:
    return chance.sample(labels, min(chance.randint(1, 3), len(labels)))


_SHARES: dict[Mix, tuple[Callable[[int, random.Random, Sequence[str]], str], ...]] = {
    Mix.MIXED: (*(_label,) * 3, *(_bucket,) * 6, *(_variable,) * 4, *(_task,) * 4, *(_dashboard,) * 3),
    Mix.SMALL: (*(_label,) * 3, *(_bucket,) * 17),
}
"""The kinds of objects in a repeating order; labels first, as every other object refers to one."""
