"""Bodies and queries of requests as values, checked in the order of the wire contract: pure."""
