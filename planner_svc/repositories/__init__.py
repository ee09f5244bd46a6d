"""Reads repositories of packages: index files, which are cached, and versions, whose content is checked."""
