"""Detects drift: how package, baseline and platform differ."""
