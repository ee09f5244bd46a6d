"""A SQLite file that is used by one thread."""
