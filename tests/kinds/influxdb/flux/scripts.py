"""Strategies for valid and invalid Flux scripts."""

from hypothesis import strategies as st

_MARKS = st.sampled_from('=({[]}),:.;/-"\\$\n \ufeff\x00') | st.sampled_from(["//", "${", "|> ", "=> ", "=~ ", "\r\n"])
_WORDS = st.sampled_from(["option ", "params", "task", "v with ", "and ", "if ", "h", "ä", "1.5", "/r/", '"a${"b"}c"'])
_ENTRIES = st.sampled_from(["a: 1", 'b: "x"', "c: 1h30m", "d: -1d", "e: now()", "f: true", '"g": 2', "every: 1h"])
_STATEMENTS = st.sampled_from(['import "x"\n', 'import y "z"\n', "x = 1\n", "// c\n", 'from(bucket: "b")\n'])
_OPTIONS = st.sampled_from(["option params = {", "option task = {", "option params = 5\n", "option v.params = "])

fragments = st.lists(_MARKS | _WORDS | _ENTRIES | _STATEMENTS | _OPTIONS, max_size=20).map("".join)
"""Parts of scripts in any order: mostly invalid, but close to valid."""

_literals = st.sampled_from(["1", "-5", "1.5", '"x"', '"\\${x} $"', "1h", "-1d", "2020-01-01", "now()"])
_expressions = st.sampled_from(
    ["true", "[1, 2]", "{z: 1, y: 2}", '"${a}b"', "(r) => {\n  return r\n}", "/[,}]/", "a.b"]
)
_names = st.sampled_from(["a", "b", "c", "d", "e", "name", "every", "offset"])


def _record(option: str, entries: dict[str, str], lead: str, between: str) -> str:
    return f"option {option} = {{{lead}{between.join(f'{name}: {value}' for name, value in entries.items())}}}"


_records = st.builds(
    _record,
    st.sampled_from(["params", "task"]),
    st.dictionaries(_names, _literals | _expressions, max_size=6),
    st.sampled_from(["", "\n    ", "v with ", "// c\n"]),
    st.sampled_from([", ", ",\n    ", ",  // c\n"]),
)
_others = st.sampled_from(['import "x"', 'from(bucket: "b")', "x = 1", "option params = 5"])

scripts = st.lists(_records | _others).map("\n".join)
"""Valid scripts, most of which have option records."""
