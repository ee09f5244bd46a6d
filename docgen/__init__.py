"""Generates pages of docs/ from code and contracts (``make reference``), and has the hooks of the site (``make docs``)."""
