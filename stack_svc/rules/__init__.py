"""The rules of stacks, leases, plans and operations, on any store."""
