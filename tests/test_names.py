"""The check of names (lint/names.py)."""

import ast
from pathlib import Path

import pytest

from lint.names import participles, repeated_classes


@pytest.mark.parametrize(
    "source",
    [
        "def wanted(): ...",
        "async def _given(): ...",
        "class Held: ...",
        "def plan(asked): ...",
        "found = 1",
        "for known in rows: ...",
        "self.made = 1",
        "import rows as held",
        "match rows:\n    case [*_] as found: ...",
        "try: ...\nexcept ValueError as known: ...",
    ],
)
def test_a_participle_is_no_name(source: str) -> None:
    """Each way to bind a name is checked."""
    assert len([*participles({Path("services/core/rows.py"): ast.parse(source)})]) == 1


@pytest.mark.parametrize("source", ["print(found)", "row.found", "plan(found=1)", "found_rows = 1", "'found'"])
def test_the_use_of_a_name_and_a_longer_name_are_allowed(source: str) -> None:
    """A library may have such a name, and a participle with its noun says what the thing is."""
    assert not [*participles({Path("services/core/rows.py"): ast.parse(source)})]


def test_a_participle_is_no_module() -> None:
    """The path is the name of a module."""
    assert len([*participles({Path("services/core/found.py"): ast.parse("")})]) == 1


def test_two_public_classes_of_one_name_in_a_package() -> None:
    """A folder of ``services`` is a package; a service is one as a whole."""
    plan, private = ast.parse("class Plan: ..."), ast.parse("class _Plan: ...")
    core, engine = Path("services/core/a.py"), Path("services/engine/b.py")
    assert not [*repeated_classes({core: plan, engine: plan})]
    assert not [*repeated_classes({core: private, Path("services/core/b.py"): private})]
    (problem,) = repeated_classes({core: plan, Path("services/core/deep/b.py"): plan})
    assert problem == "services/core: there are 2 classes Plan: services/core/a.py, services/core/deep/b.py"
    assert len([*repeated_classes({Path("stack_svc/a.py"): plan, Path("stack_svc/sqlite/b.py"): plan})]) == 1
