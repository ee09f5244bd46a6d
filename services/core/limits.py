"""Bounds that several parts share."""

MAX_PACKAGE_BYTES = 8 * 1024 * 1024
"""
Most UTF-8 text of all sources of one package together.

A plan travels to the store in one message, with each spec that it writes once or, of an update, twice: at this size it
stays far below the message limit of 64 MiB.
"""
