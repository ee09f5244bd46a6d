"""Orders and paths of packages that require each other. A graph has for each package what it requires."""

import heapq
from collections import deque
from collections.abc import Collection, Mapping, Sequence

Graph = Mapping[str, Sequence[str]]


def components(graph: Graph) -> list[list[str]]:
    """The groups of packages that reach each other, each after those that it requires (Tarjan)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    groups: list[list[str]] = []
    for root in sorted(graph):
        # A loop, as chains may be longer than the recursion that Python allows.
        work = [(root, 0)] if root not in numbers else []
        while work:
            name, at = work.pop()
            if at == 0:
                numbers[name] = lowest[name] = len(numbers)
                stack.append(name)
                on_stack.add(name)
            elif graph[name][at - 1] in on_stack:
                lowest[name] = min(lowest[name], lowest[graph[name][at - 1]])
            if at < len(graph[name]):
                work.append((name, at + 1))
                if graph[name][at] not in numbers:
                    work.append((graph[name][at], 0))
                continue
            if lowest[name] == numbers[name]:
                start = stack.index(name)
                groups.append(sorted(stack[start:]))
                on_stack.difference_update(stack[start:])
                del stack[start:]
    return groups


def path_within(graph: Graph, start: str, names: Collection[str]) -> list[str]:
    """The shortest path from *start* through *names* that leads back to it; the last package requires *start*."""
    before: dict[str, str] = {}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for required in graph[name]:
            if required == start:
                path = [name]
                while path[-1] != start:
                    path.append(before[path[-1]])
                return path[::-1]
            if required in names and required not in before:
                before[required] = name
                queue.append(required)
    raise ValueError(start)


def ordered(graph: Graph) -> list[str]:
    """
    All packages, each after those that it requires, ties by name.

    Of packages that require each other, the first by name comes first, as soon as all that they require besides is
    there.
    """
    group_of = {name: number for number, group in enumerate(components(graph)) for name in group}
    waiting = {name: set(required) for name, required in graph.items()}
    dependents: dict[str, list[str]] = {name: [] for name in graph}
    for name, required in waiting.items():
        for each in required:
            dependents[each].append(name)
    ready = sorted(name for name, required in waiting.items() if not required)
    order: list[str] = []
    while waiting:
        name = heapq.heappop(ready) if ready else _first_of_cycles(waiting, group_of)
        if name not in waiting:
            continue
        del waiting[name]
        order.append(name)
        for dependent in dependents[name]:
            if dependent in waiting:
                waiting[dependent].discard(name)
                if not waiting[dependent]:
                    heapq.heappush(ready, dependent)
    return order


def _first_of_cycles(waiting: Mapping[str, set[str]], group_of: Mapping[str, int]) -> str:
    """The first package by name of a cycle that waits for nothing outside of it."""
    blocked = {
        group_of[name]
        for name, required in waiting.items()
        if any(group_of[each] != group_of[name] for each in required)
    }
    return min(name for name in waiting if group_of[name] not in blocked)
