"""The ``pkger`` command; talks gRPC like any other client."""
