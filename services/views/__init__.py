"""Views over a plan: what there is to show of it, in which order; for whoever shows it, as text or otherwise."""
