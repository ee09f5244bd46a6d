"""What every kind of object is described with: tables of fields, shapes, references. Knows no kind."""
