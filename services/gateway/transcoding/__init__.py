"""``/api/pkger/v1``: the public RPCs over HTTP, made of their descriptors."""
