"""Action sets: their definitions, templates and rules, all of them pure (docs/actions.md)."""
