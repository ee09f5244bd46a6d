"""Runs action sets: their phases, the functions that these call, and the operations that change stacks."""
