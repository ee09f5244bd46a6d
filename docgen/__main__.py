"""Writes the generated parts of docs/reference: ``python -m docgen``, or ``make reference``."""

from docgen.reference import generated

for path, text in generated().items():
    path.write_text(text)
