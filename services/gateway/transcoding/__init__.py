"""``/api/pkger/v1``: the public RPCs over HTTP, derived from their descriptors."""
