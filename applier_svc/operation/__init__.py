"""The life of an operation around its execution: request, lease, journal, events, record."""
