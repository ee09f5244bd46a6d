"""Resources that several stacks have: one owns them, and others use them."""
