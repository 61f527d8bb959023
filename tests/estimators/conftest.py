"""What the tests of estimators share."""

import pytest

from estimators.samples import simulated


@pytest.fixture
def data(rng):
    return simulated(rng)
