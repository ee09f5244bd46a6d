"""Bounds that several parts share."""

MAX_PACKAGE_BYTES = 8 * 1024 * 1024
"""
Most UTF-8 text of all sources of one package together.

A plan holds each spec up to six times (wanted and live, in diff, step and summary); at this size it stays below the
message limit of 64 MiB.
"""
