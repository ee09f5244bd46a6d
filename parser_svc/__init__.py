"""ParserService: encodings, kinds and validation. No state, calls nobody."""
