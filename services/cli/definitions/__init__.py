"""``pkger blueprints``, ``configmaps`` and ``functions``."""
