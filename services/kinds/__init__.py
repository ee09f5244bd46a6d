"""The kinds of objects, pure: what describes them, a file for each, one registry, and what is made of it."""
