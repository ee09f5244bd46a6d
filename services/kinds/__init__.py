"""The kinds of objects, pure: one file per kind, one table that lists them."""
