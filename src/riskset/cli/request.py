"""What the options of ``fit`` and ``path`` ask for, checked before anything is read."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import riskset as rs
from riskset._errors import InputError
from riskset.cli.options import (
    Beyond,
    CensoringTies,
    Device,
    Duplicates,
    Model,
    PenaltyKind,
    Ties,
)

if TYPE_CHECKING:
    from riskset.model.penalty import Penalty

__all__ = ["Request", "check_readable"]

MAX_DIGITS = 15


def check_readable(inputs: Iterable[Path]) -> None:
    """Complain about files that are there but closed to this user."""
    for path in inputs:
        if path.exists() and not os.access(path, os.R_OK):
            raise InputError(
                f"cannot read {str(path)!r}: no permission.", hint="ask for it, or copy the file."
            )


@dataclass(frozen=True)
class Request:
    """The options that ``fit`` and ``path`` share, by the names of the options."""

    patients: Path
    covariates: str | None
    table: str | None
    query: str | None
    time: str | None
    event: str | None
    id: str | None
    entry: str | None
    strata: Sequence[str] | None
    weight: str | None
    cluster: str | None
    offset: str | None
    drop: Sequence[str] | None
    duplicates: Duplicates
    time_digits: int | None
    model: Model
    cause: int | None
    ties: Ties
    censoring_ties: CensoringTies | None
    censoring_group: str | None
    censoring_beyond: Beyond | None
    penalty: PenaltyKind
    l1_ratio: float | None
    unpenalized: Sequence[str] | None
    factor: Sequence[str] | None
    device: Device
    threads: int | None
    tol: float
    max_iter: int
    quiet: bool
    strength: float | None = None
    variance: float | None = None
    glmnet_lambda: float | None = None

    def __post_init__(self) -> None:
        self._check_model()
        self._factors()
        if self.time_digits is not None and not 0 <= self.time_digits <= MAX_DIGITS:
            raise InputError(
                f"--time-digits must lie between 0 and {MAX_DIGITS}, but it is {self.time_digits}.",
                hint="it is the number of decimals to which times are rounded.",
            )
        if self.duplicates is not Duplicates.error and self.covariates is None:
            raise InputError("--duplicates needs --covariates.", hint="leave it out.")
        if self.penalty is PenaltyKind.none:
            self._refuse_without_penalty()
        is_net = self.penalty is PenaltyKind.elasticnet
        if is_net and self.l1_ratio is None:
            raise InputError("--penalty elasticnet needs --l1-ratio.", hint="0.5 is half and half.")
        if self.l1_ratio is not None and not is_net:
            raise InputError("--l1-ratio needs --penalty elasticnet.", hint="leave it out.")
        if self.l1_ratio is not None and not 0 <= self.l1_ratio <= 1:
            raise InputError(
                f"--l1-ratio must lie between 0 and 1, but it is {self.l1_ratio:g}.",
                hint="1 is the lasso, 0 is ridge.",
            )

    def _check_model(self) -> None:
        if self.model is Model.finegray:
            if self.ties is Ties.efron:
                raise InputError(
                    "--ties efron needs --model cox.",
                    hint="Fine and Gray's model treats tied events by Breslow's method.",
                )
            return
        given = {
            "--censoring-ties": self.censoring_ties,
            "--censoring-group": self.censoring_group,
            "--censoring-beyond": self.censoring_beyond,
        }
        for option, value in given.items():
            if value is not None:
                raise InputError(f"{option} needs --model finegray.", hint="leave it out.")

    def _refuse_without_penalty(self) -> None:
        given = {
            "--strength": self.strength,
            "--variance": self.variance,
            "--glmnet-lambda": self.glmnet_lambda,
            "--l1-ratio": self.l1_ratio,
            "--unpenalized": self.unpenalized or None,
            "--factor": self.factor or None,
        }
        for option, value in given.items():
            if value is not None:
                raise InputError(
                    f"{option} was given, but --penalty is none.",
                    hint="choose --penalty l1, l2 or elasticnet, or leave it out.",
                )

    def check_strength(self) -> None:
        """A penalised fit needs its strength, stated in one way."""
        if self.penalty is PenaltyKind.none:
            return
        given = [
            option
            for option, value in (
                ("--strength", self.strength),
                ("--variance", self.variance),
                ("--glmnet-lambda", self.glmnet_lambda),
            )
            if value is not None
        ]
        if len(given) != 1:
            said = f"not {' and '.join(given)} together" if given else "but none was given"
            raise InputError(
                f"--penalty {self.penalty} needs one of --strength, --variance and "
                f"--glmnet-lambda, {said}.",
                hint="`riskset path` shows the solutions for a whole range of strengths.",
            )
        if self.variance is not None and self.penalty is PenaltyKind.elasticnet:
            raise InputError(
                "--variance goes with --penalty l1 or l2 only.", hint="use --strength."
            )

    @property
    def inputs(self) -> list[Path]:
        """The files that are read."""
        return (
            [self.patients] if self.covariates is None else [self.patients, Path(self.covariates)]
        )

    def read(self) -> "rs.Dataset":
        """The table, and the long table beside it."""
        check_readable(self.inputs)
        return rs.read_dataset(
            self.patients,
            covariates=self.covariates,
            table=self.table,
            query=self.query,
            time=self.time,
            event=self.event,
            entry=self.entry,
            strata=self.strata or None,
            weight=self.weight,
            cluster=self.cluster,
            offset=self.offset,
            censoring_group=self.censoring_group,
            id=self.id,
            drop=tuple(dict.fromkeys(self.drop or ())),
            time_digits=self.time_digits,
            duplicates=self.duplicates.value,
        )

    def estimator(self, penalty: "Penalty | None") -> "rs.Cox | rs.FineGray":
        """An estimator with these options."""
        progress = False if self.quiet else None
        if self.model is Model.finegray:
            return rs.FineGray(
                penalty,
                cause=1 if self.cause is None else self.cause,
                censoring_ties=(self.censoring_ties or CensoringTies.crr).value,
                censoring_beyond=(self.censoring_beyond or Beyond.zero).value,
                device=self.device.value,
                n_threads=self.threads,
                tol=self.tol,
                max_iter=self.max_iter,
                progress=progress,
            )
        return rs.Cox(
            penalty,
            ties=self.ties.value,
            cause=self.cause,
            device=self.device.value,
            n_threads=self.threads,
            tol=self.tol,
            max_iter=self.max_iter,
            progress=progress,
        )

    def penalty_for(self, data: "rs.Dataset") -> "Penalty | None":
        """The penalty of a fit; glmnet's scale needs the sum of the weights."""
        unpenalized, factor = tuple(self.unpenalized or ()), self._factors()
        kind = self.penalty
        if kind is PenaltyKind.none:
            return None
        if self.glmnet_lambda is not None:
            weight = data.outcome_columns.weight
            return rs.ElasticNet.from_glmnet(
                self.glmnet_lambda,
                self._ratio,
                float(data.n_rows if weight is None else weight.sum()),
                factor,
                unpenalized=unpenalized,
            )
        if self.variance is not None:
            shape = rs.L1 if kind is PenaltyKind.l1 else rs.L2
            return shape.from_variance(self.variance, unpenalized=unpenalized, factor=factor)
        return self.at_strength(self.strength or 0.0)

    def at_strength(self, strength: float) -> "Penalty":
        """The shape of penalty that was asked for, at a strength."""
        if not 0 <= strength < math.inf:
            raise InputError(
                f"--strength must be a finite number of at least 0, but it is {strength:g}.",
                hint="it is stated on the total log likelihood.",
            )
        return rs.ElasticNet(
            l1=strength * self._ratio,
            l2=strength * (1 - self._ratio),
            unpenalized=tuple(self.unpenalized or ()),
            factor=self._factors(),
        )

    @property
    def _ratio(self) -> float:
        if self.penalty is PenaltyKind.elasticnet:
            return self.l1_ratio or 0.0
        return 1.0 if self.penalty is PenaltyKind.l1 else 0.0

    def _factors(self) -> dict[str | int, float] | None:
        factors: dict[str | int, float] = {}
        for text in self.factor or ():
            # From the right, because a level of a category has an equals sign in its name.
            name, separator, value = text.rpartition("=")
            try:
                if not separator:
                    raise ValueError
                number = float(value)
            except ValueError:
                raise InputError(
                    f"--factor must be NAME=VALUE with a number, but it is {text!r}.",
                    hint="for example --factor age=0.5.",
                ) from None
            if name in factors or name in (self.unpenalized or ()):
                raise InputError(
                    f"the penalty of {name!r} was given twice.",
                    hint="give each covariate one --factor, or --unpenalized.",
                )
            factors[name] = number
        return factors or None
