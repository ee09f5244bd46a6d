"""
One folder per platform behind the driver contract (protos/pkger/driver/v1).

To write a driver for another platform:

1. Read ``driver.proto``: its comments are the contract. In short, a driver promises that

   - ``Describe`` tells the truth. The engine relies on the traits of each kind: it sends a create with an unknown
     outcome again only where identity is ``NATIVE``, matches live resources by name only where names are unique,
     foresees clashes of names within a ``name_scope``, replaces a resource where an immutable path changes, and takes
     a deletion back as ``delete_undo`` says;
   - each item of a batch gets a result of its own. ``Done`` is said only of what took effect, ``Rejected`` only of what
     certainly did not; a timeout, a reset connection or an answer that the driver does not know is ``Ambiguous``. A
     platform that asks for patience (HTTP 429, certainly no effect, or 503, which nobody knows) is told by
     ``retry_after``;
   - a resource that the platform did not let it read is an error, never ``Gone`` and never missing from a list;
   - whole kinds are listed with a number of calls that does not grow with the number of labels or details;
   - what a resource refers to is kept beside its spec, by id: told with it, refused where it does not exist, and told
     no longer once it is deleted. The words of the package in the spec are the package's own;
   - where ``sensitive_paths`` point it takes the name of a secret and refuses anything else, without repeating it;
   - where it holds secrets it writes the given ones only, and tells their keys but never their values: not in a
     result, not in an error, not in a log;
   - a spec is read back as it was written. What the platform adds, rounds or reorders, the driver normalises away, or
     every plan finds a difference. Where it holds something else than what was sent, the result of the create or the
     update has the spec that it holds;
   - each resource that is told has its display name beside its spec, so that callers need not read the spec.

2. Write ``kinds.py`` (the traits), ``servicer.py`` and ``__main__.py`` in a folder of its own. ``mutation.py`` has the
   contract as Python values and ``wire.py`` translates them, so that a servicer translates, delegates and translates
   back. Raise errors of ``services.core.errors``; the server turns them into statuses.

3. Add an entry to ``PLATFORMS`` in ``tests/drivers/platforms.py`` that starts the driver, and run
   ``pytest tests/drivers``. The driver is done when the conformance suite is green.
"""
