"""The HTTP gateway: what InfluxDB's clients say and hear of packages and stacks, by calls of the four services."""
