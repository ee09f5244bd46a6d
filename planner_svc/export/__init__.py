"""Exports resources of a platform as a package (planner.proto, ExportPackage)."""
