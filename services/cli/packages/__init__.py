"""Packages as files: reading, validating, exporting, converting them."""
