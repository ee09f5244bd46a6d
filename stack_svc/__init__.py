"""StackService, RepositoryService and JournalService: store all durable state. They call no other service."""
