"""The driver of a real InfluxDB OSS 2.7 to 2.9, over its HTTP API."""
