"""Views of plans, revisions and drift: entries and differences in order, independent of how a client shows them."""
