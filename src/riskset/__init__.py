"""Cox and Fine-Gray regression for massive observational data."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from riskset._errors import (
        DeviceError,
        InputError,
        MissingDependencyError,
        RisksetError,
        RisksetWarning,
    )
    from riskset._version import __version__
    from riskset.data.design import Design
    from riskset.data.outcome import Outcome, Surv
    from riskset.datasets import load_rhc
    from riskset.simulate import simulate_cox, simulate_finegray

# Where each public name lives. A name is imported when it is first used, so that `import riskset`
# and the command line do not wait for numba, scikit-learn and DuckDB.
_HOMES = {
    "Design": "riskset.data.design",
    "DeviceError": "riskset._errors",
    "InputError": "riskset._errors",
    "MissingDependencyError": "riskset._errors",
    "Outcome": "riskset.data.outcome",
    "RisksetError": "riskset._errors",
    "RisksetWarning": "riskset._errors",
    "Surv": "riskset.data.outcome",
    "__version__": "riskset._version",
    "load_rhc": "riskset.datasets",
    "simulate_cox": "riskset.simulate",
    "simulate_finegray": "riskset.simulate",
}

__all__ = [
    "Design",
    "DeviceError",
    "InputError",
    "MissingDependencyError",
    "Outcome",
    "RisksetError",
    "RisksetWarning",
    "Surv",
    "__version__",
    "load_rhc",
    "simulate_cox",
    "simulate_finegray",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'riskset' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
