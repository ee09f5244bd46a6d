"""Reads and writes YAML and JSON; readers keep the places of values, and count what they use."""
