"""
Checks names: each says what its thing is in the domain (CONTRIBUTING.md, "Names").

A participle says only what happened to a thing. Two classes of one name in one package make a reader look twice.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

PARTICIPLES = frozenset({"asked", "found", "given", "held", "known", "made", "wanted"})
"""Words that are no name of a module, function, class, parameter, variable or field."""

FOLDERS = ("services", "parser_svc", "planner_svc", "applier_svc", "stack_svc", "bench", "docgen", "protos", "lint")


def main() -> None:
    """Print each name that breaks a rule; exit with 1 if there are any."""
    modules = {path.relative_to(ROOT): ast.parse(path.read_bytes()) for path in _sources()}
    problems = [*participles(modules), *repeated_classes(modules)]
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))


def _sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "gen" not in path.relative_to(ROOT).parts:
                yield path


def participles(modules: dict[Path, ast.Module]) -> Iterator[str]:
    """The names that are participles, with their places."""
    for path, module in modules.items():
        if path.stem in PARTICIPLES:
            yield f"{path}: a module is named after what it does or has, not {path.stem!r}"
        for node in ast.walk(module):
            for name in _bound(node):
                if name.strip("_").lower() in PARTICIPLES:
                    yield f"{path}:{getattr(node, 'lineno', 1)}: {name!r} does not say what it is in the domain"


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that *node* binds."""
    match node:
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.MatchAs(name=str(name)) | ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
            yield name


def repeated_classes(modules: dict[Path, ast.Module]) -> Iterator[str]:
    """The public classes of which a package has two: a folder of services, or a service."""
    places: defaultdict[tuple[str, str], list[Path]] = defaultdict(list)
    for path, module in modules.items():
        package = "/".join(path.parts[:2]) if path.parts[0] == "services" else path.parts[0]
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[package, node.name].append(path)
    for (package, name), paths in places.items():
        if len(paths) > 1:
            yield f"{package}: there are {len(paths)} classes {name}: {', '.join(map(str, paths))}"


if __name__ == "__main__":
    main()
