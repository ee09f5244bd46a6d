"""Carries a plan out: what is sent, how often, and what became of what got no answer."""
