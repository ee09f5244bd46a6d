"""The commands of ``pkger repo``: the repositories that are configured."""
