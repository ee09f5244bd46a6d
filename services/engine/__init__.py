"""The words and rules of an operation, pure: what a step does, how it ended, what is done next (engine.md 1 to 5)."""
