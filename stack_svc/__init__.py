"""StackService and JournalService: every durable fact. Calls nobody."""
