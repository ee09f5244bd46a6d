"""The charts of dashboards (packages.md 5): what their kinds hold, how they are read, checked and summarised."""
