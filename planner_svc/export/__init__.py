"""Writes what is on a platform as a package (planner.proto, ExportPackage)."""
