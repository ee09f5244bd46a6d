"""
The messages that databases of commit ebdd516 and before hold, and their translation for the migrations.

They are outside of the published contracts. Whoever changes a message that the store keeps freezes it here the same
way, in a descriptor set of its own, and lets the translation of this one write that.
"""
