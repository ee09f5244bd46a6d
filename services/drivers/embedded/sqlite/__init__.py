"""The SQLite storage of the embedded platform: its tables, and the SQL that reads and changes them."""
