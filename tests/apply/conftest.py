"""Tests share the services of their module."""

import pytest

from tests.cluster import Cluster


@pytest.fixture
def services(shared_services: Cluster) -> Cluster:
    return shared_services
