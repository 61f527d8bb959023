"""The baseline cumulative hazard of a fit, and the survival of new rows.

Hazards are kept as logarithms at a reference value of the linear predictor, so covariates far from
0 neither overflow nor lose digits. Nothing is extrapolated beyond the data: before the first event
time of its stratum the cumulative hazard is 0, after the last it stays at its last value.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Matrix, Pointer, Rows
from riskset.data.checks import Places, as_time_numbers
from riskset.data.labels import as_labels, label_columns
from riskset.data.outcome import Outcome
from riskset.kernels import means_cpu as kernels
from riskset.model.loss import Loss
from riskset.model.step_function import step_functions

__all__ = ["Baseline", "event_groups"]

MAX_LOG_FACTOR = 300.0
"""Exponentials of smaller numbers, and their products, are neither infinite nor lose digits."""


@dataclass(frozen=True, eq=False)
class Baseline:
    r"""Cumulative hazard of each stratum at the linear predictor `center`.

    .. math:: H(t \mid \eta) = e^{\eta - center} \sum_{t_g \le t} h_g

    with the increments of Breslow, :math:`h_g = N_g / D_g`, or Efron, :math:`h_g = \sum_k
    \frac{N_g/m}{D_g - (k/m) E_g}`, whichever ties method the coefficients were fitted with; entry
    times, case weights and strata enter the risk sets as in the fit. In Fine and Gray's model H is
    the cumulative subdistribution hazard, and :math:`1 - e^{-H}` the cumulative incidence.

    Event times of stratum s, distinct and ascending, are ``time[stratum_ptr[s]:stratum_ptr[s +
    1]]``; `log_cumulative` is log H there, and `strata` are the labels.

    References
    ----------
    Breslow (1972), Journal of the Royal Statistical Society B 34, 216-217.
    Efron (1977), Journal of the American Statistical Association 72, 557-565,
    doi:10.1080/01621459.1977.10480613.
    """

    strata: AnyArray
    stratum_ptr: Pointer
    time: NDArray[np.float64]
    log_cumulative: NDArray[np.float64]
    center: float

    @classmethod
    def fit(cls, loss: Loss, eta: Rows, center: float | None = None) -> "Baseline":
        """From the training rows, at `center` or the middle of the finite linear predictors.

        `eta` (n,) is in the caller's order, offset included; -inf is a row without risk. With the
        limiting risk sets of an infinite estimate the hazard is that of the rows that stay at risk
        in the limit. To compare *all* rows, let finite coefficients stand for the infinite ones
        instead: with the loss of all rows and ``eta + K z``, z the direction in which the
        likelihood keeps rising and K large (1e4 over the least gap of z), new rows with the same K
        get their limits, since only logarithms are ever kept.
        """
        outcome = loss.outcome
        if center is None:
            finite = eta[np.isfinite(eta)]
            center = float(np.median(finite)) if finite.size else 0.0
        risk = loss.risk
        log_hazard = _log_hazard(loss, eta - center)
        log_cumulative = kernels.cumulate(log_hazard, risk.starts_stratum)
        kept, stratum_ptr = event_groups(outcome)
        return cls(
            outcome.strata,
            stratum_ptr,
            outcome.group_time[kept],
            log_cumulative[kept],
            center,
        )

    @property
    def n_strata(self) -> int:
        """Number of strata in the fit."""
        return int(self.stratum_ptr.size - 1)

    def cumulative_hazard(
        self, eta: Rows, times: object, stratum: object = None, places: Places | None = None
    ) -> Matrix:
        """Cumulative hazard of k rows at times (k, n_times).

        It is 0 before the first event time, and constant after the last. `eta` has the offset
        included and may be infinite. Times are in the unit of the fit, in any order. `stratum` are
        labels, or a sequence of label arrays, as in the fit, which are needed if the fit has
        strata, and `places` says what messages call them.

        Raises
        ------
        InputError
            If strata are missing or unknown, or a time is not a finite number.
        """
        at = as_time_numbers(
            times, "times", None, Places(), missing_hint="leave missing times out."
        )
        eta = np.asarray(eta, dtype=np.float64)
        codes = self.codes_of(stratum, eta.size, places or Places())
        eta = eta - self.center
        if self.n_strata == 1:
            return _hazards(eta, self.log_cumulative_at(0, at))
        out = np.empty((eta.size, at.size))
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(codes[order]) != 0))[: eta.size]
        for rows in np.split(order, starts[1:]):
            if rows.size:
                log_h = self.log_cumulative_at(int(codes[rows[0]]), at)
                out[rows] = _hazards(eta[rows], log_h)
        return out

    def survival(
        self, eta: Rows, times: object, stratum: object = None, places: Places | None = None
    ) -> Matrix:
        """Probability of no event by each time, ``exp(-H)``; see `cumulative_hazard`."""
        out = self.cumulative_hazard(eta, times, stratum, places)
        np.negative(out, out=out)
        return np.asarray(np.exp(out, out=out))

    def functions(
        self,
        method: Literal["survival", "cumulative_hazard", "incidence"],
        eta: Rows,
        stratum: object = None,
        places: Places | None = None,
    ) -> NDArray[np.object_]:
        """What a method gives for each row (k,), as `StepFunction` of time."""
        codes = self.codes_of(stratum, eta.size, places or Places())
        return step_functions(
            [self.time[self.stratum_ptr[code] : self.stratum_ptr[code + 1]] for code in codes],
            [partial(self._row, method, *row) for row in zip(eta.tolist(), codes, strict=True)],
        )

    def _row(self, method: str, eta: float, code: int, times: AnyArray) -> NDArray[np.float64]:
        """A method for one row, at times (m,)."""
        (row,) = getattr(self, method)(np.array([eta]), times, self.label_of(code))
        return np.asarray(row)

    def label_of(self, code: int) -> object:
        """The label of a stratum for one row, as `codes_of` takes it."""
        return [self.strata.tolist()[code]] if self.n_strata > 1 else None

    def steps(
        self, eta: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Times, log of the hazard at each, and of the cumulative hazard (m,), of one `eta`."""
        log_h = self.log_cumulative + (eta - self.center)
        before = np.append(-np.inf, log_h[:-1])
        starts = self.stratum_ptr[:-1]
        before[starts[starts < log_h.size]] = -np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = np.where(log_h > -np.inf, log_h + np.log(-np.expm1(before - log_h)), -np.inf)
        return self.time, jump, log_h

    def incidence(
        self, eta: Rows, times: object, stratum: object = None, places: Places | None = None
    ) -> Matrix:
        """Probability of the event by each time, ``1 - exp(-H)``; see `cumulative_hazard`."""
        out = self.cumulative_hazard(eta, times, stratum, places)
        np.negative(out, out=out)
        np.expm1(out, out=out)
        return np.asarray(np.abs(out, out=out))

    def log_cumulative_at(self, code: int, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log of the cumulative hazard of a stratum at times (m,), at the `center`."""
        own = slice(self.stratum_ptr[code], self.stratum_ptr[code + 1])
        seen = np.searchsorted(self.time[own], at, side="right")
        return np.append(-np.inf, self.log_cumulative[own])[seen]

    def codes_of(self, stratum: object, n_rows: int, places: Places) -> Index:
        """The stratum of the fit of each row (n_rows,); see `cumulative_hazard`."""
        if stratum is None:
            if self.n_strata > 1:
                raise InputError(
                    f"the model was fitted with {self.n_strata:,} strata, so each new row needs "
                    f"its stratum, but {places.column('strata')} is missing.",
                    hint="add it, with the labels used in the fit; without `times` there is the "
                    "linear predictor, which needs no stratum.",
                )
            return np.zeros(n_rows, dtype=np.int64)
        labels = _labels(stratum, n_rows, places)
        known = {label: code for code, label in enumerate(self.strata.tolist())}
        codes = np.empty(n_rows, dtype=np.int64)
        for i, label in enumerate(labels):
            code = known.get(label, known.get(str(label)))
            if code is None and self.strata.tolist() == [0]:
                raise InputError(
                    f"the model was fitted without strata, but {places.column('strata')} was "
                    f"given ({places.row(i)}, value {label!r}).",
                    hint="leave it out, or fit the model with strata.",
                )
            if code is None:
                raise InputError(
                    f"{places.column('strata')} has {label!r} ({places.row(i)}), a stratum that "
                    "was not in the fit, so it has no baseline hazard (known: "
                    f"{', '.join(map(repr, list(known)[:8]))}{', ...' if len(known) > 8 else ''}).",
                    hint="keep rows of the strata of the fit; without `times` there is the linear "
                    "predictor, which needs no stratum.",
                )
            codes[i] = code
        return codes

    def to_arrays(self) -> dict[str, AnyArray]:
        """Plain arrays of numbers and text, to be stored without pickle; see `from_arrays`."""
        return {
            "strata": np.array([json.dumps(label, default=str) for label in self.strata.tolist()]),
            "stratum_ptr": self.stratum_ptr,
            "time": self.time,
            "log_cumulative": self.log_cumulative,
            "center": np.array(self.center),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> "Baseline":
        """From what `to_arrays` gave."""
        labels = [json.loads(str(label)) for label in arrays["strata"]]
        strata = np.empty(len(labels), dtype=object)
        strata[:] = [tuple(label) if isinstance(label, list) else label for label in labels]
        return cls(
            strata,
            np.asarray(arrays["stratum_ptr"], dtype=np.int64),
            np.asarray(arrays["time"], dtype=np.float64),
            np.asarray(arrays["log_cumulative"], dtype=np.float64),
            float(arrays["center"]),
        )


def event_groups(outcome: Outcome) -> tuple[Index, Pointer]:
    """Groups with events, by stratum and time, and where each stratum begins (S + 1,)."""
    # Groups stand by stratum and then latest first; those without events have time NaN.
    kept = np.flatnonzero(np.isfinite(outcome.group_time))
    kept = kept[np.lexsort((outcome.group_time[kept], outcome.group_stratum[kept]))]
    stratum_ptr = np.searchsorted(outcome.group_stratum[kept], np.arange(outcome.strata.size + 1))
    return kept, stratum_ptr.astype(np.int64)


def _hazards(eta: Rows, log_h: NDArray[np.float64]) -> Matrix:
    """``exp(eta[i] + log_h[k])`` (n, m), 0 where `log_h` is -inf, whatever eta."""
    seen = np.flatnonzero(log_h > -np.inf)
    largest = max(np.abs(eta).max(initial=0.0), np.abs(log_h[seen]).max(initial=0.0))
    if largest < MAX_LOG_FACTOR:
        return np.asarray(np.exp(eta)[:, None] * np.exp(log_h))
    out = np.zeros((eta.size, log_h.size))
    with np.errstate(over="ignore"):
        out[:, seen] = np.exp(eta[:, None] + log_h[seen])
    return out


def _log_hazard(loss: Loss, eta: Rows) -> NDArray[np.float64]:
    """Log increment of each group at linear predictor 0."""
    if loss.censoring is not None or np.isfinite(eta).all():
        return loss.evaluate(eta).log_hazard
    risk, relative = loss.risk, eta[loss.risk.order]  # may be -inf, which `evaluate` does not take
    sizes = kernels.risk_set_means(np.zeros((relative.size, 0)), relative, risk)
    return kernels.tie_terms(
        sizes.log_rest, sizes.log_tied, risk.group_events, risk.group_tied, loss.efron
    ).log_hazard


def _labels(stratum: object, n_rows: int, places: Places) -> list[object]:
    """Labels as plain Python values; several columns of labels give tuples, as in `Outcome`."""
    if isinstance(stratum, (list, tuple)) and stratum and isinstance(stratum[0], tuple):
        return list(stratum)
    columns = [as_labels(one, "strata", n_rows, places) for one in label_columns(stratum)]
    plain = [column.tolist() for column in columns]
    return list(zip(*plain, strict=True)) if len(plain) > 1 else plain[0]
