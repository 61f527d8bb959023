"""Models of being censored at deviation, one for each arm."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._messages import Note, Value
from riskset._runtime import Runtime
from riskset._types import Features, Index, Rows
from riskset.cohort.protocol.censoring_settings import CensoringModel
from riskset.cohort.protocol.protocol_rows import ProtocolRows
from riskset.data.design import Design
from riskset.data.natural_spline import spline_basis
from riskset.data.outcome import Outcome
from riskset.model.baseline import Baseline
from riskset.model.cox import CoxLoss
from riskset.model.logistic import LogisticLoss
from riskset.model.references import without_references
from riskset.solve.fit import fit_by_newton
from riskset.solve.result import UNCERTIFIED

__all__ = ["ArmModel", "DeviationModel", "is_of_time", "log_survival"]

NAN = float("nan")
ARMS = ("comparator", "target")
MANY = 0.25
"""The share of people at risk who deviate at one time that is worth a note in a Cox model."""


@dataclass(frozen=True, eq=False)
class DeviationModel:
    """A model of deviation in one arm.

    Attributes
    ----------
    arm : {"target", "comparator"}
    part : {"denominator", "numerator"}
        Of the weights: with all covariates, or with those at baseline alone.
    rows, deviations : int
        Rows at risk of a deviation, and deviations. Without any, there is no model, and the
        probability of being uncensored is 1.
    names : tuple of str
        Columns of the model. Those of the spline of time are ``time[1]``, ``time[2]``, ...
    intercept : float
        Log odds of a deviation with all columns 0, or NaN in a Cox model.
    coef : (p,) float64
        Log odds ratios, or log hazard ratios.
    log_likelihood : float

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1, 1, 1, 1, 2, 2], [0, 0, 0, 0, 1, 0], entry=[0, 0, 0, 0, 1, 1])
    >>> person, leaves, sick = [1, 2, 3, 4, 3, 4], [1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]
    >>> found = rs.cohort.censoring_weights(
    ...     y, [1] * 6, [[x] for x in sick], person=person, deviates=leaves, time_df=0
    ... )
    >>> found.models[0].rows, found.models[0].deviations
    (5, 1)
    """

    arm: str
    part: str
    rows: int
    deviations: int
    names: tuple[str, ...] = ()
    intercept: float = NAN
    coef: Features | None = None
    log_likelihood: float = NAN


@dataclass(frozen=True, eq=False)
class ArmModel:
    """The data of a model of deviation in one arm, which can be fitted with case weights.

    Attributes
    ----------
    at : (m,) int64
        Its rows: those at risk, and in the numerator also those of others at the same times.
    design : Design
        Their columns, (m, p).
    """

    settings: CensoringModel
    arm: int
    part: str
    at: Index
    design: Design
    entry: Rows
    time: Rows
    deviates: NDArray[np.bool_]

    @classmethod
    def prepare(
        cls,
        rows: ProtocolRows,
        covariates: Design | None,
        arm: int,
        part: str,
        settings: CensoringModel,
    ) -> "ArmModel":
        """The rows at risk of an arm, with time and covariates as columns.

        The numerator is a function of time and baseline covariates, so it counts everybody who is
        followed while somebody can deviate: by who is at risk, it would weigh people down for it.
        """
        is_numerator = part == "numerator"
        exposed = rows.in_time_of_risk(arm) if is_numerator else rows.at_risk
        exposed = exposed & (rows.treatment == arm)
        # An event comes before a deviation of the same time.
        had_event = (rows.status > 0) & (settings.deviation_at == "end")
        if settings.kind == "logistic":
            exposed &= ~had_event
        at = np.flatnonzero(exposed)
        entry, time = rows.entry[at], rows.time[at]
        time = np.where(had_event[at], np.nextafter(time, entry), time)
        parts = []
        if settings.kind == "logistic":
            # The end of a row would tell that somebody deviates before others' rows end.
            is_one_time = settings.deviation_at == "end" and time.size and time.min() == time.max()
            parts.append(_time_columns(entry, 0 if is_one_time else settings.time_df))
        if covariates is not None:
            parts.append(covariates.take_rows(at))
        design = Design.stack(
            [p for p in parts if p.n_features] or [Design.from_columns({}, at.size)]
        )
        return cls(
            settings,
            arm,
            part,
            at,
            without_references(design, None),
            entry,
            time,
            rows.deviates[at],
        )

    def fit(self, weight: Rows | None = None) -> tuple[Rows, DeviationModel, tuple[Note, ...]]:
        """Logarithms of the probability not to deviate in each row (m,), and the model.

        `weight` (m,) are case weights.
        """
        w = np.ones(self.at.size) if weight is None else weight
        used = w > 0
        n = int(np.count_nonzero(self.deviates & used))
        known = DeviationModel(ARMS[self.arm], self.part, int(used.sum()), n)
        if n == 0:
            return np.zeros(self.at.size), known, ()
        if n == int(used.sum()):
            raise CohortError(
                "Positivity",
                "everybody who could deviate in the {arm} does, so there is nobody with a weight.",
                hint="check when people deviate, and who can. With a longer `window` "
                "of a grace period, more people start within it.",
                values={"arm": Value("name", ARMS[self.arm])},
            )
        if self.settings.kind == "cox":
            return self._fit_cox(w, known)
        return self._fit_logistic(w, known)

    def _fit_logistic(
        self, weight: Rows, known: DeviationModel
    ) -> tuple[Rows, DeviationModel, tuple[Note, ...]]:
        zero = np.zeros(self.design.n_features)
        loss = LogisticLoss.of(self.deviates, Runtime.select(), weight=weight)
        solution = fit_by_newton(self.design, loss, zero, zero, tol=self.settings.tol)
        if solution.status in UNCERTIFIED:
            raise self._not_converged()
        limit = solution.likelihood
        intercept = limit.evaluate(solution.eta).intercept
        log_odds = solution.eta + intercept
        # Rows that a limit leaves out deviate with certainty, or stay with certainty.
        is_certain = (limit.outcome.weight == 0) & (weight > 0)
        log_stay = np.where(limit.outcome.weight > 0, -np.logaddexp(0.0, log_odds), 0.0)
        model = replace(
            known,
            names=self.design.names,
            intercept=intercept - float(self.design.center @ solution.finite_part),
            coef=solution.coef,
            log_likelihood=solution.log_likelihood,
        )
        # Nobody needs to stand for people like whom nobody deviates.
        is_lost = bool((self.deviates & is_certain).any())
        return log_stay, model, self._notes(solution.infinite != 0) if is_lost else ()

    def _fit_cox(
        self, weight: Rows, known: DeviationModel
    ) -> tuple[Rows, DeviationModel, tuple[Note, ...]]:
        zero = np.zeros(self.design.n_features)
        outcome = Outcome.build(self.time, self.deviates, entry=self.entry, weight=weight)
        loss = CoxLoss(outcome, "breslow", Runtime.select())
        solution = fit_by_newton(self.design, loss, zero, zero, tol=self.settings.tol)
        if solution.status in UNCERTIFIED:
            raise self._not_converged()
        if solution.infinite.any():
            columns = [self.design.names[j] for j in np.flatnonzero(solution.infinite)]
            raise CohortError(
                "Positivity",
                "the Cox model of deviation in the {arm} has infinite coefficients of {names}.",
                hint="leave these covariates out, or use `kind='logistic'`.",
                values={
                    "arm": Value("name", ARMS[self.arm]),
                    "names": Value("name", ", ".join(map(repr, columns))),
                },
            )
        baseline, eta = Baseline.fit(loss, solution.eta), solution.eta
        start, end = (
            np.exp(baseline.log_cumulative_at(0, at) + (eta - baseline.center))
            for at in (self.entry, self.time)
        )
        fitted = replace(
            known,
            names=self.design.names,
            coef=solution.coef,
            log_likelihood=solution.log_likelihood,
        )
        return start - end, fitted, self._notes_on_ties(weight)

    def _notes_on_ties(self, weight: Rows) -> tuple[Note, ...]:
        """That many deviate at one time, where exp(-H) is more than the share who stay."""
        leaves = self.deviates & (weight > 0)
        at, place = np.unique(self.time[leaves], return_inverse=True)

        def before(times: Rows) -> Rows:
            order = np.argsort(times)
            total = np.append(0.0, np.cumsum(weight[order]))
            return np.asarray(total[np.searchsorted(times[order], at)])

        share = np.bincount(place, weight[leaves]) / (before(self.entry) - before(self.time))
        largest = int(np.argmax(share))
        if self.part == "numerator" or share[largest] < MANY:
            return ()
        text = (
            "{share:.0%} of the people at risk in the {arm} deviate at the time {at:g}. A Cox "
            "model expects different times, so its weights after this time are too small: use the "
            "logistic model."
        )
        values = {
            "share": Value("measure", float(share[largest])),
            "arm": Value("name", ARMS[self.arm]),
            "at": Value("measure", float(at[largest])),
        }
        return (Note("tied_deviations", (), text, values),)

    def _not_converged(self) -> CohortError:
        return CohortError(
            "NotConverged",
            "the model of deviation in the {arm} did not converge.",
            hint="use fewer covariates, or a smaller `time_df`.",
            values={"arm": Value("name", ARMS[self.arm])},
        )

    def _notes(self, infinite: NDArray[np.bool_]) -> tuple[Note, ...]:
        names = [self.design.names[j] for j in np.flatnonzero(infinite)]
        columns = tuple(dict.fromkeys("time" if is_of_time(name) else name for name in names))
        if not columns or self.part == "numerator":
            return ()
        text = (
            "in some rows, {names} {n:?determines|determine} who deviates in the {arm}: nobody who "
            "stays is like these people, so no weight can represent them."
        )
        listed, several = ", ".join(map(repr, columns)), len(columns) > 1
        values = {
            "names": Value("name", ("one or more of " if several else "") + listed),
            "n": Value("things", len(columns)),
            "arm": Value("name", ARMS[self.arm]),
        }
        return (Note("separated_deviation", columns, text, values),)


def log_survival(
    models: tuple[ArmModel, ...], n_rows: int, weight: Rows | None = None
) -> tuple[Rows, tuple[DeviationModel, ...], tuple[Note, ...]]:
    """Logarithms of the probability not to deviate in each row (n_rows,), and the models.

    It is 0 in rows that are not at risk.
    """
    out, fitted = np.zeros(n_rows), []
    notes: list[Note] = []
    for model in models:
        if not model.at.size:
            fitted.append(DeviationModel(ARMS[model.arm], model.part, 0, 0))
            continue
        own, found, noted = model.fit(None if weight is None else weight[model.at])
        out[model.at] = own
        fitted.append(found)
        notes += noted
    return out, tuple(fitted), tuple(notes)


def is_of_time(name: str) -> bool:
    """Whether a column of a model is of the spline of time."""
    return name.startswith("time[")


def _time_columns(moment: Rows, df: int) -> Design:
    """The columns of a natural cubic spline, as R's ``ns(time, df)``, without those it cannot have.

    Knots that coincide with others, as where there are few different times, are left out.
    """
    if df == 0 or not moment.size or moment.min() == moment.max():
        return Design.from_columns({}, moment.size)
    outer = np.array([moment.min(), moment.max()])
    inner = np.unique(np.quantile(moment, np.linspace(0, 1, df + 1)[1:-1]))
    inner = inner[(outer[0] < inner) & (inner < outer[1])]
    basis = spline_basis(moment, inner, outer)
    return Design.from_columns({f"time[{j + 1}]": column for j, column in enumerate(basis.T)})
