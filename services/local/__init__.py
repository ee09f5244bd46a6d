"""The services of one command, in one process."""
