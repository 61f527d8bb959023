"""Fixtures and settings that all tests share."""

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("riskset", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("riskset")


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(20260)
