"""The embedded platform: real resources in one SQLite file."""
