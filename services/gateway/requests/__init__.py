"""Reads bodies and queries of requests into values, with the checks in the order of InfluxDB: pure."""
