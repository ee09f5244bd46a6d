"""Values of the core as protobuf messages and back; the only place that knows both."""
