"""
The charts of dashboards (docs/reference/package-format.md, "Dashboards"): their kinds, and the code that reads, checks
and summarises them.
"""
