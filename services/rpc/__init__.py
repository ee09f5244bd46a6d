"""One way to serve and one way to connect, used by all services, the tests and the command line."""
