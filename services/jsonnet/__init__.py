"""Evaluates Jsonnet in a process of its own, with bounds on memory and time, and on what it can read."""
