"""The warning of a fit without a finite, certified optimum."""

from sklearn.exceptions import ConvergenceWarning as OfSklearn

from riskset._errors import RisksetWarning

__all__ = ["ConvergenceWarning"]


class ConvergenceWarning(RisksetWarning, OfSklearn):  # type: ignore[misc]
    """A fit has an infinite estimate, or no certified optimum; `status_` says which.

    It is also a ``sklearn.exceptions.ConvergenceWarning``, so filters of that class apply.

    Examples
    --------
    >>> import warnings
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0], [True, True, False])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", rs.ConvergenceWarning)
    ...     model = rs.Cox().fit([[3.0], [2.0], [1.0]], y)  # the order of times is that of x
    >>> model.status_, [warning.category.__name__ for warning in caught]
    ('infinite_estimate', ['ConvergenceWarning'])
    """
