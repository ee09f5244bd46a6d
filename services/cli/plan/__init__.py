"""Plans: made, shown, approved, applied, stored."""
