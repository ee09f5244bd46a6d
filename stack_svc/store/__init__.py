"""
The interface of a store: transactions over a few tables, with values as input and output (docs/reference/engine.md,
"Store").

The rules of stacks and operations are written once, on top of this interface. A store such as ``stack_svc.sqlite``
implements it. Callers and stores keep to this protocol:

- S1: ``work`` may run more than once. It changes nothing but its argument; random values are passed to it.
- S2: lock stacks first, then call ``now()``, then do the rest.
- S3: ``work`` catches no error of the store; a write that can conflict returns the conflict as a value.
- S4: a write may be delayed until the commit, so ``work`` does not read its own writes.
- S5: a transaction writes only rows of stacks that it has locked.
- S6: no call removes expired rows; ``sweep`` does.
- S7: methods take and return lists: one call for each batch, not for each row.
- S8: texts are ordered by code point; a page starts after a key.
- S9: text is valid Unicode without NUL; keys from outside are short (``stack_svc.rules.sanitize``).
- S12: integers fit 64 bits signed, times are microseconds since 1970, JSON is canonical text.
"""
