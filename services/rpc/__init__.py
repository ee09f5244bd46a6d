"""Serving and connecting, in one way for all services, the tests and the command line."""

import os

# gRPC logs to standard error, which is for our log and for users; its errors arrive as a status.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
