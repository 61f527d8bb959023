"""Which model a command fits, how, and with which penalty; checked before anything is read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

import riskset as rs
from riskset._errors import InputError
from riskset.cli import options as opt
from riskset.cli.options import PenaltyKind

if TYPE_CHECKING:
    from riskset.model.penalty import Penalty

__all__ = ["Chosen", "Running", "Shape", "Strength", "as_cause"]


class Solver(StrEnum):
    """How the minimum is found."""

    newton = "newton"
    ccd = "ccd"


SolverName = Annotated[
    Solver,
    typer.Option(
        "--solver",
        help="Newton's method, or the slower coordinate descent of Cyclops, for comparisons.",
        rich_help_panel=opt.RUN,
    ),
]


def as_cause(text: str | None) -> Any:
    """A cause as it stands in the data: a whole number where it is one, else a label."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return text


@dataclass(frozen=True, kw_only=True)
class Running:
    """How to compute, and how much to say."""

    quiet: opt.Quiet = False
    device: opt.DeviceName = opt.Device.auto
    threads: opt.Threads = None
    tol: opt.Tolerance = 1e-8
    max_iter: opt.MaxIter = 200
    solver: SolverName = Solver.newton


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The regression model."""

    model: opt.ModelKind = opt.Model.cox
    cause: opt.Cause = None
    ties: opt.TieMethod = opt.Ties.breslow
    censoring_ties: opt.CensoringTieMethod = None
    censoring_group: opt.CensoringGroup = None
    censoring_beyond: opt.CensoringBeyond = None

    def __post_init__(self) -> None:
        if self.model is opt.Model.finegray:
            if self.ties is opt.Ties.efron:
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
        for option in _given(given):
            raise InputError(f"{option} needs --model finegray.", hint="leave it out.")

    def estimator(self, penalty: "Penalty | None", run: Running) -> "rs.Cox | rs.FineGray":
        """An estimator with these options."""
        common: dict[str, Any] = {
            "device": run.device.value,
            "n_threads": run.threads,
            "tol": run.tol,
            "max_iter": run.max_iter,
            "solver": run.solver.value,
            "progress": False if run.quiet else None,
        }
        cause = as_cause(self.cause)
        if self.model is opt.Model.cox:
            return rs.Cox(penalty, ties=self.ties.value, cause=cause, **common)
        return rs.FineGray(
            penalty,
            cause=1 if cause is None else cause,
            censoring_ties=(self.censoring_ties or opt.CensoringTies.crr).value,
            censoring_beyond=(self.censoring_beyond or opt.Beyond.zero).value,
            **common,
        )


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A penalty whose strength is still open."""

    penalty: opt.PenaltyShape = PenaltyKind.l1
    l1_ratio: opt.L1Ratio = None
    unpenalized: opt.Unpenalized = None
    factor: opt.Factor = None

    def __post_init__(self) -> None:
        self._factors()
        if self.penalty is PenaltyKind.none:
            for option in _given(self._options()):
                raise InputError(
                    f"{option} was given, but --penalty is none.",
                    hint="choose --penalty l1, l2 or elasticnet, or leave it out.",
                )
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

    def at_strength(self, strength: float) -> "Penalty":
        """The shape of penalty that was asked for, at a strength."""
        if not 0 <= strength < math.inf:
            raise InputError(
                f"--strength must be a finite number of at least 0, but it is {strength:g}.",
                hint="it is stated on the total log likelihood.",
            )
        unpenalized, factor = tuple(self.unpenalized or ()), self._factors()
        if self.penalty is not PenaltyKind.elasticnet:
            shape = rs.L1 if self.penalty is PenaltyKind.l1 else rs.L2
            return shape(strength, unpenalized=unpenalized, factor=factor)
        return rs.ElasticNet(
            l1=strength * self._ratio,
            l2=strength * (1 - self._ratio),
            unpenalized=unpenalized,
            factor=factor,
        )

    def _options(self) -> dict[str, object]:
        """The options that need a penalty."""
        return {
            "--l1-ratio": self.l1_ratio,
            "--unpenalized": self.unpenalized or None,
            "--factor": self.factor or None,
        }

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


@dataclass(frozen=True, kw_only=True)
class Strength(Shape):
    """A penalty of one strength, stated on one of three scales; or none."""

    penalty: opt.PenaltyShape = PenaltyKind.none
    strength: opt.Strength = None
    variance: opt.Variance = None
    glmnet_lambda: opt.GlmnetLambda = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variance and self.penalty is PenaltyKind.elasticnet:
            raise InputError(
                "--variance goes with --penalty l1 or l2 only.", hint="use --strength."
            )

    def check(self, is_cross_validated: bool) -> None:
        """One strength, or any number to be compared."""
        given = _given(self._scales())
        if is_cross_validated:
            if self.penalty is PenaltyKind.none:
                raise InputError("--cv needs a penalty.", hint="choose --penalty l1, for example.")
            if len(given) > 1:
                raise InputError(
                    f"{' and '.join(given)} were given together.", hint="use one scale."
                )
            return
        if self.penalty is PenaltyKind.none:
            return
        for option, values in self._scales().items():
            if values is not None and len(values) > 1:
                raise InputError(
                    f"{option} was given {len(values)} times.", hint="several are compared by --cv."
                )
        if len(given) != 1:
            said = f"not {' and '.join(given)} together" if given else "but none was given"
            raise InputError(
                f"--penalty {self.penalty} needs one of --strength, --variance and "
                f"--glmnet-lambda, {said}.",
                hint="`riskset path` shows the solutions for a whole range of strengths, and --cv "
                "chooses one.",
            )

    @property
    def n_given(self) -> int:
        """How many strengths were given, on whatever scale."""
        return sum(len(values or ()) for values in self._scales().values())

    def spelled(self, penalty: "Penalty", given: "Sequence[Penalty]") -> str:
        """One of the given penalties as it was typed; any other by its strengths."""
        for option, values in self._scales().items():
            for value, typed in zip(values or (), given, strict=False):
                if typed == penalty:
                    return f"{option} {value:.12g}"
        return f"l1 = {penalty.l1:.4g}, l2 = {penalty.l2:.4g}"

    def _scales(self) -> dict[str, list[float] | None]:
        return {
            "--strength": self.strength or None,
            "--variance": self.variance or None,
            "--glmnet-lambda": self.glmnet_lambda or None,
        }

    def _options(self) -> dict[str, object]:
        return {**self._scales(), **super()._options()}

    def penalties_for(self, data: "rs.Dataset") -> "list[Penalty]":
        """The penalties that were given; glmnet's scale needs the sum of the weights."""
        if self.penalty is PenaltyKind.none:
            return []
        unpenalized, factor = tuple(self.unpenalized or ()), self._factors()
        if self.glmnet_lambda:
            weight = data.outcome_columns.weight
            total = float(data.n_rows if weight is None else weight.sum())
            return [
                rs.ElasticNet.from_glmnet(lam, self._ratio, total, factor, unpenalized=unpenalized)
                for lam in self.glmnet_lambda
            ]
        if self.variance:
            shape = rs.L1 if self.penalty is PenaltyKind.l1 else rs.L2
            return [
                shape.from_variance(v, unpenalized=unpenalized, factor=factor)
                for v in self.variance
            ]
        return [self.at_strength(s) for s in self.strength or ()]


def _given(options: Mapping[str, object]) -> list[str]:
    return [option for option, value in options.items() if value is not None]
