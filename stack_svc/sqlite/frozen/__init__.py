"""
The messages that databases of commit ebdd516 and before hold, and their translation for the migrations.

These messages are not part of the published contracts. Before a stored message changes again, freeze its current form
here in a descriptor set of its own, and change ``translation`` to write that form.
"""
