"""
The rules of an operation as pure functions: effects of steps, outcomes, the next move (docs/reference/engine.md,
"Invariants" to "Recovery").
"""
