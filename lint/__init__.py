"""Checks of the source code that no linter has: run by ``make lint``."""
