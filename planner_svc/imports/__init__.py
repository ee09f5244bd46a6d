"""Live resources with their owners, and the plan of an import into a stack."""
