"""
Which versions of packages go together, or why none do. Pure: what is published, installed and requested goes in.

``resolve.py`` is the entrance and ``model.py`` has its values. ``search.py`` is the seam to the library that searches.
"""
