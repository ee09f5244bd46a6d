"""
The words and rules of an operation, pure: what a step does, how it ended, what is done next (docs/reference/engine.md,
"Invariants" to "Recovery").
"""
