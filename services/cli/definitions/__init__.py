"""``pkger blueprints`` and ``configmaps``."""
