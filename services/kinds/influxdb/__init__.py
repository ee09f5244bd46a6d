"""The kinds of objects of InfluxDB, a file for each."""
