"""Runs a plan: sends its effects, retries them, and looks up outcomes that are unknown."""
