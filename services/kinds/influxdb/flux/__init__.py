"""The part of Flux that packages need: scan scripts, find their option records, write values into these."""
