"""
The charts of dashboards (docs/reference/package-format.md, "Dashboards"): what their kinds hold, how they are read,
checked and summarised.
"""
