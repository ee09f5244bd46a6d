"""Versions and ranges near each other, so that the ones are often at a bound of the others."""

from hypothesis import strategies as st

_NUMBERS = st.integers(0, 3).map(str)
_PRERELEASES = st.sampled_from(["0", "1", "rc.1", "rc.2", "rc.10", "alpha", "alpha.1", "beta", "rc-1"])
_WILDCARDS = st.sampled_from("xX*")
_OPERATORS = st.sampled_from(["", "=", "!=", ">", ">=", "<", "<=", "~", "^"])
_BLANKS = st.sampled_from(["", " ", "\t", "  "])
_SEPARATORS = st.sampled_from([" ", ",", ", ", " ,", "  "])
_ORS = st.sampled_from(["||", " || ", "|| "])

_releases = st.tuples(_NUMBERS, _NUMBERS, _NUMBERS).map(".".join)
_full = st.builds("{}{}".format, _releases, st.just("") | _PRERELEASES.map("-{}".format))

version_texts = st.builds("{}{}{}".format, st.sampled_from(["", "v"]), _full, st.sampled_from(["", "+0", "+1", "+10"]))
"""Texts that are versions."""

_open = st.lists(_NUMBERS, min_size=1, max_size=2).flatmap(
    lambda numbers: st.lists(_WILDCARDS, max_size=3 - len(numbers)).map(lambda rest: ".".join([*numbers, *rest]))
)
_partials = st.builds("{}{}".format, st.sampled_from(["", "v"]), _full | _open) | _WILDCARDS
_comparators = st.builds("{}{}{}".format, _OPERATORS, _BLANKS, _partials) | st.builds(
    "{} - {}".format, _partials, _partials
)


@st.composite
def _joined(draw: st.DrawFn, parts: st.SearchStrategy[str], separators: st.SearchStrategy[str]) -> str:
    first, *others = draw(st.lists(parts, min_size=1, max_size=3))
    return first + "".join(draw(separators) + each for each in others)


range_texts = _joined(_joined(_comparators, _SEPARATORS), _ORS) | st.just("")
"""Texts that are ranges."""
