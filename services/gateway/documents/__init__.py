"""What InfluxDB's clients are answered: plans as diff and summary, stacks with their history, violations: pure."""
