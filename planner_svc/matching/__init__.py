"""Which live resource belongs to which object of a package."""
