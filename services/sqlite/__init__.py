"""One SQLite file behind one thread, for whatever is kept in one."""
