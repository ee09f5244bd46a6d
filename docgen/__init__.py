"""Generates pages of docs/ from code and contracts, and has the hooks of the site (make reference, make docs)."""
