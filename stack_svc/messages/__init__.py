"""Translates between messages and the values of the store."""
