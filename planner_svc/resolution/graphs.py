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
                group = [stack.pop()]
                while group[-1] != name:
                    group.append(stack.pop())
                groups.append(sorted(group))
                on_stack.difference_update(group)
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
    groups = components(graph)
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    waiting = {name: set(required) for name, required in graph.items()}
    outside = [
        sum(group_of[each] != number for name in group for each in waiting[name]) for number, group in enumerate(groups)
    ]
    dependents: dict[str, list[str]] = {name: [] for name in graph}
    for name, required in waiting.items():
        for each in required:
            dependents[each].append(name)
    ready = sorted(name for name, required in waiting.items() if not required)
    # The packages of cycles that wait for nothing outside of them.
    cyclic = sorted(name for number, group in enumerate(groups) if not outside[number] for name in group)
    order: list[str] = []
    while waiting:
        name = heapq.heappop(ready or cyclic)
        if name not in waiting:
            continue
        del waiting[name]
        order.append(name)
        for dependent in dependents[name]:
            if dependent not in waiting:
                continue
            waiting[dependent].discard(name)
            if not waiting[dependent]:
                heapq.heappush(ready, dependent)
            group = group_of[dependent]
            if group != group_of[name]:
                outside[group] -= 1
                for each in groups[group] if not outside[group] else ():
                    heapq.heappush(cyclic, each)
    return order
