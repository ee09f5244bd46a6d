"""Generates pages of docs/ from code and contracts (``make reference``), with the hooks of the site (``make docs``)."""
