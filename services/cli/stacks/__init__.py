"""Stacks: their records, history, drift, imports, removal."""
