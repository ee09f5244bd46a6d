"""Values of the core as proto messages and back; the only module that knows both."""
