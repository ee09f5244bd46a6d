"""The parts that describe a kind of object: tables of fields, shapes, references. Independent of any kind."""
