"""The HTTP gateway: pkger's own API, and packages and stacks for clients of InfluxDB, by calls of the four services."""
