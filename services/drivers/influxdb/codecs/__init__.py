"""Translates specs of packages to bodies of the InfluxDB API and back: pure, one module per type of resource."""
