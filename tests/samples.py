"""Marks cases that `make test` leaves out, as it has a sample of similar ones."""

from functools import partial

import pytest

slow = partial(pytest.param, marks=pytest.mark.slow)
"""A case that takes seconds: it runs on every landing."""

rare = partial(pytest.param, marks=pytest.mark.faults)
"""A case that runs with ``--faults`` only."""
