"""Answers about the packages that repositories publish."""
