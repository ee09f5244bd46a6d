"""Specs of packages as the HTTP API of InfluxDB has them, and back: pure, one module for each sort of resource."""
