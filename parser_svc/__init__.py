"""ParserService: encodings, kinds and validation. It has no state but a cache, and calls no other service."""
