"""The entrance: a request, and what is published and installed, to changes or a conflict."""

from collections.abc import Iterable

from planner_svc.resolution.bounds import Bounds
from planner_svc.resolution.changes import changes_of, warnings_of
from planner_svc.resolution.codes import missing_package
from planner_svc.resolution.conflicts import explain, not_installed, unknown
from planner_svc.resolution.held_back import held_back
from planner_svc.resolution.model import Conflict, Options, Repository, Request, Resolution
from planner_svc.resolution.nab_search import search as nab_search
from planner_svc.resolution.outcomes import Resolver, Unsolved
from planner_svc.resolution.search import Search, SearchLimit
from planner_svc.resolution.situation import read_situation
from services.packages.installed import InstalledPackage

_DEFAULT_OPTIONS = Options()
_DEFAULT_BOUNDS = Bounds()


def resolve(
    repositories: Iterable[Repository],
    installed: Iterable[InstalledPackage],
    request: Request,
    options: Options = _DEFAULT_OPTIONS,
    bounds: Bounds = _DEFAULT_BOUNDS,
    search: Search = nab_search,
) -> Resolution | Conflict:
    """
    Resolve a request. Equal input gives an equal answer, in whatever order it comes.

    Args:
        repositories: All configured ones, each with the packages that the request, installed packages or other packages
            lead to.
        installed: The packages of the stack.
        request: What is to change.
        options: What the client consents to.
        bounds: How much it may take. An answer depends on the clock only if a bound on time is reached.
        search: Finds solutions.

    Returns:
        The changes; or why there are none, and what works instead.

    Raises:
        RequestInvalid: The request names a package twice.
    """
    situation = read_situation(repositories, installed, request, options)
    package = missing_package(situation)
    if package is not None:
        return not_installed(package, "updated" if package in situation.updates else "uninstalled")
    try:
        outcome = Resolver(search, bounds.budget()).resolve(situation)
    except SearchLimit:
        return unknown()
    if isinstance(outcome, Unsolved):
        return explain(Resolver(search, bounds.explanation_budget()), situation, outcome)
    return Resolution(
        changes_of(outcome.world, outcome.solution),
        held_back(Resolver(search, bounds.held_back_budget()), situation, outcome),
        warnings_of(outcome.world, outcome.solution),
    )
