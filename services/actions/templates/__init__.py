"""Texts with expressions in ``{{ }}``: how they are read and rendered (docs/templates.md)."""
