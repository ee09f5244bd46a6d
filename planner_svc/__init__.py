"""PlannerService: what would have to happen. Reads, never writes."""
