"""What the embedded platform keeps in SQLite: its tables, and the SQL that reads and changes them."""
