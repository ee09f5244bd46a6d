"""Makes what docs/ has from code and contracts, and helps to build the site (``make reference``, ``make docs``)."""
