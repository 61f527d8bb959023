"""Results of a cross-validation: the score of every penalty in every replicate, and the choice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from riskset._messages import Note, Value
from riskset._types import AnyArray, Features, Index, Matrix
from riskset.data.frame import data_frame
from riskset.infer.crossval.evaluator import ScoredPenalty, are_equal
from riskset.infer.crossval.folds import Folds
from riskset.infer.crossval.scores import ReplicateScore, ScoreKind
from riskset.model.penalty import Penalty

__all__ = ["CrossValidation"]


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    r"""Scores of all penalties in all replicates of a cross-validation.

    Attributes
    ----------
    penalties : tuple of Penalty, or (None,)
        Sorted by share of L1, then from strong to weak.
    score_name : {"held_out", "difference"}
    scores : (k, m) float64
        Scores of k penalties in m replicates. In a search with four repetitions or more, only the
        first explores: away from the best penalty, the others are NaN and have no status.
    log_likelihoods : (k, m) float64
        Log likelihood of the training rows.
    kkt : (k, m) float64
        Relative KKT residual of each replicate.
    statuses : (k, m) text
        As `Cox.status_`.
    n_iter, n_nonzero_replicates : (k, m) int64
        Numbers of steps and of non-zero coefficients.
    n_left_out : (k, m) int64
        Events left out of a score, because their likelihood is 0 in the limit of estimates that are
        infinite on the training rows; see `CoxCV`.
    infinite_names : (c,) text
        Covariates with an infinite estimate in some replicates.
    n_infinite : (k, c) int64
        Number of such replicates, by penalty.
    mean, se : (k,) float64
        Mean and standard error of the scores. If only the first repetition has scores, the
        difference of the means to the best penalty, and the ratio of the errors, are those of the
        first repetition. The standard error is :math:`\sqrt{\sum_r s_r^2 / (R K_r)}` where
        :math:`s_r` is the standard deviation among the :math:`K_r` folds of repetition r of R.
        Repetitions do not count as further evidence.
    n_nonzero : (k,) int64
        Number of non-zero coefficients in the fit on all rows.
    repeats : (m,) int64
        Repetition of each replicate, from 0.
    folds : (m,) array
        Held-out fold of each replicate: its number from 0, or the given id.
    best, chosen : int
        Index of the penalty with the best mean score of all replicates, and of the penalty chosen
        by the rule.

    Examples
    --------
    >>> import riskset as rs
    >>> kinds = [rs.L1(strength) for strength in (40.0, 20.0)]
    >>> model = rs.CoxCV(penalties=kinds, folds=5, repeats=1).fit(rs.load_rhc())
    >>> found = model.cross_validation_
    >>> found.scores.shape
    (2, 5)
    >>> found.penalties[found.best]
    L1(20.0)
    """

    penalties: tuple[Penalty | None, ...]
    score_name: ScoreKind
    scores: Matrix
    log_likelihoods: Matrix
    kkt: Matrix
    statuses: AnyArray
    n_iter: AnyArray
    n_nonzero_replicates: AnyArray
    n_left_out: AnyArray
    infinite_names: AnyArray
    n_infinite: AnyArray
    mean: Features
    se: Features
    n_nonzero: Index
    repeats: Index
    folds: AnyArray
    best: int
    chosen: int
    library: str | None = None

    @classmethod
    def gather(
        cls,
        scored: Sequence[ScoredPenalty],
        names: Sequence[str],
        folds: Folds,
        score: ScoreKind,
        best: int,
        chosen: int,
        library: str | None = None,
    ) -> "CrossValidation":
        """From what an engine scored; `names` are those of the covariates."""
        columns = {
            name: _filled([[getattr(r, name) for r in one.replicates] for one in scored])
            for name in ReplicateScore._fields
            if name != "infinite"
        }
        counts = [Counter(j for r in one.replicates for j in r.infinite) for one in scored]
        infinite = sorted(set().union(*counts))
        return cls(
            penalties=tuple(one.penalty for one in scored),
            score_name=score,
            scores=columns["score"],
            log_likelihoods=columns["log_likelihood"],
            kkt=columns["kkt"],
            statuses=columns["status"],
            n_iter=columns["n_iter"],
            n_nonzero_replicates=columns["n_nonzero"],
            n_left_out=columns["n_left_out"],
            infinite_names=np.array([str(names[j]) for j in infinite], dtype=np.str_),
            n_infinite=np.array([[count[j] for j in infinite] for count in counts], dtype=np.int64),
            mean=np.array([one.mean for one in scored]),
            se=np.array([one.se for one in scored]),
            n_nonzero=np.array([one.n_nonzero for one in scored], dtype=np.int64),
            repeats=folds.repeats,
            folds=np.array([folds.labels[r][f] for r, f in folds]),
            best=best,
            chosen=chosen,
            library=library,
        )

    def __repr__(self) -> str:
        k, m = self.scores.shape
        of = "1 model" if k == 1 else f"{k:,} penalties"
        up_to = "" if self.is_complete.all() else "up to "
        return (
            f"CrossValidation({self.score_name!r}, {of} in {up_to}{m:,} replicates; "
            f"mean {self.mean[self.chosen]:.6g}, se {self.se[self.chosen]:.3g})"
        )

    def __len__(self) -> int:
        return len(self.penalties)

    @property
    def l1(self) -> Features:
        """L1 part of each penalty (k,)."""
        return np.array([0.0 if p is None else p.l1 for p in self.penalties])

    @property
    def l2(self) -> Features:
        """L2 part of each penalty (k,)."""
        return np.array([0.0 if p is None else p.l2 for p in self.penalties])

    @property
    def strengths(self) -> Features:
        """l1 + l2 of each penalty (k,)."""
        return self.l1 + self.l2

    @property
    def n_replicates(self) -> Index:
        """Number of replicates that scored each penalty (k,)."""
        return np.asarray(self._is_scored.sum(axis=1))

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """Whether all replicates have scored each penalty (k,)."""
        return np.asarray(self._is_scored.all(axis=1))

    @property
    def largest_kkt(self) -> float:
        """Largest relative KKT residual of a replicate."""
        return float(self.kkt[self._is_scored].max())

    @property
    def n_failed(self) -> int:
        """Number of replicates without a certified solution. Their scores count nevertheless."""
        return int(np.count_nonzero(self._failed))

    @property
    def _is_scored(self) -> NDArray[np.bool_]:
        return np.asarray(self.statuses != "")

    @property
    def _failed(self) -> NDArray[np.bool_]:
        return ~np.isin(self.statuses, ("", "converged", "infinite_estimate"))

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row per penalty and replicate."""
        k, m = self.scores.shape
        columns: dict[str, AnyArray] = {
            "penalty": np.repeat(np.arange(k), m),
            "l1": np.repeat(self.l1, m),
            "l2": np.repeat(self.l2, m),
            "repeat": np.tile(self.repeats, k),
            "fold": np.tile(self.folds, k),
            "score": self.scores.reshape(-1),
            "log_likelihood": self.log_likelihoods.reshape(-1),
            "n_nonzero": self.n_nonzero_replicates.reshape(-1),
            "n_iter": self.n_iter.reshape(-1),
            "kkt": self.kkt.reshape(-1),
            "status": self.statuses.reshape(-1),
            "n_left_out": self.n_left_out.reshape(-1),
        }
        there = self._is_scored.reshape(-1)
        columns = {name: column[there] for name, column in columns.items()}
        return data_frame(columns, library or self.library)

    def curve(self, library: str | None = None) -> Any:
        """Return a data frame with one row per penalty: mean and error of the scores, and size."""
        columns: dict[str, AnyArray] = {
            "penalty": np.arange(len(self)),
            "l1": self.l1,
            "l2": self.l2,
            "mean": self.mean,
            "se": self.se,
            "n_nonzero": self.n_nonzero,
            "n_replicates": self.n_replicates,
        }
        return data_frame(columns, library or self.library)

    def notes(self) -> list[Note]:
        """Notes on the choice."""
        found = self._note_on_equal_scores() or self._note_on_edge()
        return [*found, *self._note_on_infinite(), *self._note_on_failures()]

    def _note_on_equal_scores(self) -> list[Note]:
        """Scores that are all the same, but for the tolerance of the fits, choose nothing."""
        complete = self.is_complete
        if len(self) == 1 or not are_equal(self.mean[complete]):
            return []
        # The same models fit the training rows alike; then no other score would distinguish them.
        if all(map(are_equal, self.log_likelihoods[complete].T)):
            advice = "they lead to the same model; try weaker ones."
        elif self.score_name == "held_out":
            advice = (
                "hardly any fold has an event with others at risk; take fewer folds, or "
                "`score='difference'`, which compares with the training rows, too."
            )
        else:
            advice = "the held-out rows carry no information about the penalised covariates."
        mean = round(float(self.mean[complete][0]), 9) + 0.0
        values = {
            "n": Value("things", complete.sum()),
            "mean": Value("measure", mean),
            "advice": Value("name", advice),
        }
        return [
            Note(
                "equal_scores",
                (),
                "all {n:,} penalties have the same mean score ({mean:.6g}), so the "
                "strongest was chosen: {advice}",
                values,
            )
        ]

    def _note_on_edge(self) -> list[Note]:
        ratios = np.array([1.0 if p is None else round(p.l1_ratio, 9) for p in self.penalties])
        same = np.flatnonzero(ratios == ratios[self.best])
        if same.size == 1 or self.best not in (same[0], same[-1]):
            return []
        is_strongest = self.best == same[0]
        which = "strongest" if is_strongest else "weakest"
        advice = (
            "the data hardly speak for any penalised covariate, or stronger ones were left out."
            if is_strongest
            else "weaker ones may be better: give them, or a smaller `min_ratio`."
        )
        best = self.penalties[self.best]
        shown = best and best.with_strength(float(f"{best.strength:.3g}"))
        return [
            Note(
                "edge_of_search",
                (),
                f"the best score is that of the {which} penalty that was tried ({{penalty}}): "
                f"{advice}",
                {"penalty": Value("setting", repr(shown))},
            )
        ]

    def _note_on_infinite(self) -> list[Note]:
        names = tuple(self.infinite_names.tolist())
        if not names:
            return []
        k, m = self.scores.shape
        most = self.n_infinite.max(axis=0)
        complete = self.is_complete
        listed = ", ".join(
            f"{name!r} in {count:,}" for name, count in list(zip(names, most, strict=True))[:5]
        ) + (f" and {len(names) - 5} more covariates" if len(names) > 5 else "")
        n_infinite, lost = self.n_infinite[complete], self.n_left_out[complete]
        differ = (n_infinite != most).any() or (lost != lost[0]).any()
        n_left_out = int(self.n_left_out.sum(axis=1).max())
        values = {
            "listed": Value("things", listed),
            "m": Value("things", m),
            "lost": Value("count", n_left_out),
        }
        return [
            Note(
                "infinite_in_replicates",
                names,
                "estimates are infinite on the training rows: {listed} of {m:,} replicates"
                f"{' of each penalty' if k > 1 else ''} (separation, as of a treatment without "
                "events there). Their scores are the limits"
                + (", but for {lost:event|events} of likelihood 0, left out" if n_left_out else "")
                + (
                    "; not the same at all penalties, which makes those hard to compare"
                    if differ
                    else ""
                )
                + ". Penalise the covariate, or divide the rows so that it keeps events in every "
                "training set: balanced by event, by group, or into folds of your own.",
                values,
            )
        ]

    def _note_on_failures(self) -> list[Note]:
        if not self.n_failed:
            return []
        where = np.argwhere(self._failed)[0]
        first = tuple(int(i) for i in where)
        values = {
            "failed": Value("things", self.n_failed),
            "n": Value("things", self.n_replicates.sum()),
            "strength": Value("setting", self.strengths[first[0]]),
            "repeat": Value("setting", self.repeats[first[1]]),
            "fold": Value("setting", self.folds[first[1]]),
            "status": Value("name", repr(str(self.statuses[first]))),
            "kkt": Value("measure", self.kkt[first]),
        }
        return [
            Note(
                "replicates",
                (),
                "{failed:,} of {n:,} replicates are not 'converged' (first: strength "
                "{strength:.4g}, repetition {repeat}, fold {fold}, status {status}, relative KKT "
                "residual {kkt:.1e}). Their scores count all the same.",
                values,
            )
        ]

    # --------------------------------------------------------------------------- keeping

    def to_arrays(self) -> dict[str, AnyArray]:
        """Everything but the penalties and the choice."""
        return {
            f.name: value
            for f in fields(self)
            if isinstance(value := getattr(self, f.name), np.ndarray)
        }


def _filled(rows: Sequence[Sequence[Any]]) -> AnyArray:
    """Rows of unequal length as an array; what is missing is NaN, an empty text or 0."""
    longest = max(rows, key=len)
    kind = np.array(longest).dtype
    missing = np.nan if kind.kind == "f" else np.zeros((), kind).item()
    return np.array([[*row, *[missing] * (len(longest) - len(row))] for row in rows])
