"""Who calls: the form of tokens, what a listener demands, and the decision about a call. Roles belong here."""
