"""The kinds of objects as pure data and functions: the format, a file for each kind, the registry, and its users."""
