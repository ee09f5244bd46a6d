"""
What the stack service demands of a store: transactions over a few tables, values in and values out
(docs/reference/engine.md, "Store").

Rules stand above this folder and are written once; a store stands below it, such as ``stack_svc.sqlite``. The rules of
the protocol:

- S1: ``work`` may run more than once. Its effects go through its argument, and its chance comes in from outside.
- S2: lock, then ``now()``, then the rest.
- S3: ``work`` catches no error of the store; what can conflict answers with a value.
- S4: a write may be sent as late as with the commit, so ``work`` does not read what it wrote.
- S5: a transaction writes rows of stacks that it locked, and of no others.
- S6: no clean-up inside a call; that is what ``sweep`` is for.
- S7: whole batches: one list in, one list out.
- S8: texts are ordered by code point; a page goes on behind a key.
- S9: text is valid Unicode without NUL; keys from outside are short (``stack_svc.texts``).
- S12: integers fit 64 bits signed, times are microseconds since 1970, JSON is canonical text.
"""
