"""The charts of dashboards (packages.md 5): their kinds, and how they are read, checked and summarised."""
