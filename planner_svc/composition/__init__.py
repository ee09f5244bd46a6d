"""
Several packages as one package of their stack. Pure: parsed packages go in.

``compose.py`` is the entrance, and ``model.py`` has its values.
"""
