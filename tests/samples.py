"""What the gate leaves out, as it tries a sample of what is much alike."""

from functools import partial

import pytest

rare = partial(pytest.param, marks=pytest.mark.faults)
"""A case that runs with --faults only, as others are much like it."""
