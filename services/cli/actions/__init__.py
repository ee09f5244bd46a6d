"""Action sets, snapshots and functions: performed, followed, shown, deleted."""
