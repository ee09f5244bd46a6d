"""The domain, pure: standard library only, no I/O, no clock, no gRPC."""
