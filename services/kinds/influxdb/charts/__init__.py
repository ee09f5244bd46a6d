"""
The charts of dashboards (docs/reference/package-format.md, "Dashboards"): their kinds, and how they are read, checked
and summarised.
"""
