"""The rules of an operation as pure functions: effects of steps, outcomes, the next move (engine.md 1 to 5)."""
