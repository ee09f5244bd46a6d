"""One way to serve and one way to connect, used by all services, the tests and the command line."""

import os

# gRPC writes lines of its own to standard error, which is for our log and for people; what matters comes as a status.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
