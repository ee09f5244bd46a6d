"""PlannerService: computes the steps that make a platform what a package declares. Reads, never writes."""
