"""Action sets: their definitions, templates and rules, all of them pure (docs/blueprints.md)."""
