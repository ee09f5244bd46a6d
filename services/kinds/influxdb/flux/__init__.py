"""Flux, as far as packages need it: scanning scripts, finding their option records, writing values into these."""
