"""Documents for InfluxDB's clients: plans as diff and summary, stacks with their history, violations: pure."""
