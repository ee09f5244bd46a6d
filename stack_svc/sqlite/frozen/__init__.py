"""
The messages that databases of commit ebdd516 and before hold, and their translation for the migrations.

They are outside of the published contracts. Before a stored message changes again, freeze it here in a descriptor set
of its own, and let ``translation`` write that one.
"""
