"""Platforms and their resources."""
