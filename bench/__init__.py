"""Benchmarks: ``python -m bench`` prints figures, and neither passes nor fails."""
