"""Evaluates Jsonnet in a separate process, with limits on memory, time and files."""
