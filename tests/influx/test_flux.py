"""The part of Flux that the stand-in checks."""

import pytest

from tests.influx import flux
from tests.influx.flux_format import formatted
from tests.influx.problem import Problem
from tests.influx.task_options import TaskOptions, rewritten, task_options


@pytest.mark.parametrize(
    "script",
    [
        'from(bucket: "b") |> range(start: -1h)',
        'x = "a ${r.b + "c ${d}"} e"',
        r'x = "quote \" and \${ none"',
        'f = (r) => r.path =~ /a\\/[b]"/ and r.n / 2 == 1',
        'x = [1, 2,]\ny = {a: 1,}\n// ( { "',
        'f = (r) => { return /"/ }',
        "t = 2021-03-04T05:06:07.8Z\nd = 1h30m\nü = 1",
    ],
)
def test_takes_scripts_of_any_kind(script: str) -> None:
    assert flux.tokens(script)


@pytest.mark.parametrize(
    "script", ["from(", "from)", "x = [1}", '"', '"${', '"${}"', "x = 1 +", "f(a: 1 +)", "x = 'a'"]
)
def test_finds_errors_of_syntax(script: str) -> None:
    with pytest.raises(flux.FluxError):
        flux.tokens(script)


@pytest.mark.parametrize(
    ("option", "read"),
    [
        ('{name: "a", every: 1h}', TaskOptions("a", "1h", "", 0)),
        (
            '{cron: "*/5 0-6,8 * jan mon", name: "a \\"b\\"", offset: -90s, other: [{name: 1}]}',
            TaskOptions('a "b"', "", "*/5 0-6,8 * jan mon", -90),
        ),
        ('{\n  name: "a", // the name\n  every: 1mo,\n}', TaskOptions("a", "1mo", "", 0)),
    ],
)
def test_reads_the_option_of_a_task(option: str, read: TaskOptions) -> None:
    assert task_options(f'import "x"\noption task = {option}\nf = () => {{\n  task = 1\n  return task\n}}') == read


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("from()", "invalid"),
        ('// option task = {name: "a", every: 1h}', "invalid"),
        ('option task = {name: "a", every: 1h}\noption task = {name: "a", every: 1h}', "invalid"),
        ('option task = {name: "a", every: 1h, cron: "@daily"}', "invalid"),
        ('option task = {name: "${a}", every: 1h}', "invalid"),
        ('option task = {name: "a", cron: "* * * *"}', "invalid"),
        ('option task = {name: "a", cron: "61 * * * *"}', "invalid"),
        ('option task = {name: "a", every: 1h, offset: 500ms}', "invalid"),
        ('option task = {name: "a", every: 1h, offset: 1d}', "internal error"),
        ('option task = {name: "a", every: 1h, concurrency: 1.5}', "invalid"),
    ],
)
def test_refuses_options_as_the_server_does(script: str, code: str) -> None:
    with pytest.raises(Problem) as refused:
        task_options(script)
    assert refused.value.code == code


def test_writes_options_into_a_script() -> None:
    script = 'x = 1\noption task = {name: "a", every: 1h, offset: 1m}\nfrom()\r\n'
    assert rewritten(script, {"cron": '"@daily"', "name": '"b"'}) == (
        'x = 1\noption task = {name: "b", cron: "@daily", offset: 1m}\nfrom()\r\n'
    )


def test_formats_white_space_between_statements_and_pipes() -> None:
    script = (
        '// first\nimport "a"\nimport "b"\noption task = {name: "x",\n  every: 1h,\n}\nf = (r) =>\n  r.x\n'
        f'from(bucket: "{"b" * 60}")\n|> range(start: -task.every) |> filter(fn: f)\n// kept\nx = 1 // too'
    )
    assert formatted(script) == (
        '// first\nimport "a"\nimport "b"\n\noption task = {name: "x", every: 1h}\n\nf = (r) => r.x\n\n'
        f'from(bucket: "{"b" * 60}")\n|> range(start: -task.every) |> filter(fn: f)\n// kept\n\nx = 1 // too\n'
    )
