"""Marks cases that run with --faults only: the gate tries a sample of similar cases."""

from functools import partial

import pytest

rare = partial(pytest.param, marks=pytest.mark.faults)
"""A case that runs with --faults only, as it is similar to others."""
