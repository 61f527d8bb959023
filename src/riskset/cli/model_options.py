"""The options that say which model a command fits, how, and with which penalty."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import riskset as rs
from riskset._errors import InputError
from riskset.cli.options import MODEL, PENALTY, RESULT, RUN, chosen, given, option, require

if TYPE_CHECKING:
    from riskset.model.penalty import Penalty

__all__ = [
    "ComputeOptions",
    "FrailtyOptions",
    "ModelOptions",
    "PenaltyOptions",
    "PenaltyShapeOptions",
    "as_cause",
]

SCALES = ("strength", "variance", "glmnet_lambda")
"""Options that give the strength of a penalty, each on its own scale."""


def as_cause(text: str | None) -> Any:
    """A cause as it stands in the data: a whole number where it is one, else a label."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return text


def numbers_by_name(option: str, texts: Sequence[str] | None) -> Iterator[tuple[str, float]]:
    """The names and numbers of an option ``NAME=VALUE`` that may be repeated."""
    for text in texts or ():
        # From the right, because a level of a category has an equals sign in its name.
        name, separator, value = text.rpartition("=")
        try:
            if not separator:
                raise ValueError
            number = float(value)
        except ValueError:
            raise InputError(
                f"{option} must be NAME=VALUE with a number, but it is {text!r}.",
                hint=f"for example {option} age=0.5.",
            ) from None
        yield name, number


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """How to compute, and how much to print."""

    quiet: bool = option("Print no summary; warnings are still printed.", False, panel=RESULT)
    device: Literal["auto", "cpu", "cuda"] = option("Compute on this device.", "auto", panel=RUN)
    threads: int | None = option(
        "Use this number of threads; results do not depend on it.",
        metavar="N",
        panel=RUN,
        of="n_threads",
    )
    tol: float = option(
        "Stop a fit when its relative KKT residual is at most this.", 1e-8, panel=RUN
    )
    max_iter: int = option(
        "Stop after this number of Newton steps, or of sweeps of coordinate descent.",
        200,
        metavar="N",
        panel=RUN,
    )
    solver: Literal["newton", "ccd"] = option(
        "Fit by Newton's method, or by the cyclic coordinate descent of Cyclops, which is slower "
        "and meant for comparisons.",
        "newton",
        panel=RUN,
    )

    def arguments(self) -> dict[str, Any]:
        """The arguments of an estimator."""
        options = chosen(self)
        return options | {"progress": False if options.pop("quiet") else None}


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The regression model."""

    model: Literal["cox", "finegray"] = option(
        "Model the hazard (Cox), or the subdistribution hazard (Fine and Gray).",
        "cox",
        panel=MODEL,
    )
    cause: str | None = option(
        "Model this event code; other events count as censored (cox) or as competing (finegray).",
        metavar="CODE",
        panel=MODEL,
    )
    ties: Literal["breslow", "efron", "exact"] = option(
        "Treat tied event times by this method.", "breslow", panel=MODEL
    )
    firth: bool = option(
        "Maximise Firth's penalised likelihood, whose estimate is finite also where that of the "
        "likelihood is infinite.",
        False,
        panel=MODEL,
    )
    censoring_ties: Literal["crr", "finegray"] | None = option(
        "finegray: treat censorings at event times as crr in R (default), or as in Fine and "
        "Gray's paper.",
        panel=MODEL,
    )
    censoring_group: str | None = option(
        "finegray: estimate a censoring distribution for each group in this column.",
        metavar="COL",
        panel=MODEL,
    )
    censoring_beyond: Literal["zero", "last"] | None = option(
        "finegray: after the last time of a group, set its censoring distribution to zero "
        "(default), or keep its last value.",
        panel=MODEL,
    )
    person: Literal["row", "cluster"] | None = option(
        "finegray with --entry: take each row, or the rows of each --cluster, for one person. The "
        "person is not censored where one row ends and the next begins.",
        panel=MODEL,
    )
    fixed: list[str] | None = option(
        "Fix the coefficient of a covariate at a value, such as age=0.05. May be repeated.",
        metavar="NAME=VALUE",
        panel=MODEL,
    )

    def __post_init__(self) -> None:
        options = given(self, "censoring_ties", "censoring_group", "censoring_beyond", "person")
        self._held()
        if self.model == "cox":
            require(options, "--model finegray", "leave it out.")
            if self.firth and self.ties == "exact":
                raise InputError(
                    "--firth and --ties exact were both given.", hint="use --ties efron."
                )
        elif self.ties != "breslow":
            raise InputError(
                f"--ties {self.ties} needs --model cox.",
                hint="Fine and Gray's model treats tied events by Breslow's method.",
            )
        else:
            require(given(self, "firth"), "--model cox", "leave it out.")

    def check_likelihood(self, penalty: str, interval: str | None = None) -> None:
        """Refuse what a likelihood that is not a sum over rows does not have, before reading."""
        words = "--firth" if self.firth else "--ties exact" if self.ties == "exact" else None
        if words is None:
            return
        if self.firth and penalty != "none":
            raise InputError(
                f"--firth cannot be combined with --penalty {penalty}.",
                hint="leave out one of them.",
            )
        if interval in ("robust", "bootstrap"):
            raise InputError(
                f"--interval {interval} is not available for {words}.",
                hint="use --interval profile, or wald.",
            )

    def estimator(
        self, penalty: "Penalty | None", compute: ComputeOptions
    ) -> "rs.Cox | rs.FineGray":
        """An estimator with these options."""
        options = chosen(self) | compute.arguments()
        options |= {"cause": as_cause(self.cause)} if self.cause is not None else {}
        del options["model"]
        options.pop("censoring_group", None)  # it is a column of the data
        options["fixed"] = self._held()
        if self.model == "cox":
            return rs.Cox(penalty, **options)
        del options["ties"], options["firth"]
        return rs.FineGray(penalty, **options)

    def _held(self) -> dict[str, float] | None:
        held: dict[str, float] = {}
        for name, number in numbers_by_name("--fixed", self.fixed):
            if name in held:
                raise InputError(
                    f"the coefficient of {name!r} was fixed twice.",
                    hint="give --fixed once for each covariate.",
                )
            held[name] = number
        return held or None


@dataclass(frozen=True, kw_only=True)
class FrailtyOptions:
    """Shared frailties of clusters, if they are asked for."""

    frailty: Literal["gamma", "lognormal"] | None = option(
        "cox: give the rows of each --cluster a common frailty, drawn from this distribution.",
        panel=MODEL,
    )
    frailty_variance: float | None = option(
        "frailty: fix the variance at this value (default: estimate it).", metavar="V", panel=MODEL
    )
    frailty_method: Literal["ml", "reml"] | None = option(
        "frailty: estimate the variance by maximum likelihood (ml, the default) or, for lognormal, "
        "by restricted maximum likelihood (reml), as R's coxph.",
        panel=MODEL,
    )

    def __post_init__(self) -> None:
        if self.frailty is None:
            require(given(self, "frailty_variance", "frailty_method"), "--frailty")

    def check(self, model: ModelOptions, compute: ComputeOptions, others: dict[str, bool]) -> None:
        """Refuse what a model with frailties does not have; `others` by option, if it was given."""
        if self.frailty is None:
            return
        refused = {
            "--model finegray": model.model != "cox",
            "--ties exact": model.ties == "exact",
            "--solver ccd": compute.solver != "newton",
            "--device cuda": compute.device == "cuda",
            "--fixed": bool(model.fixed),
            "--firth": model.firth,
        }
        for name, is_given in (refused | others).items():
            if is_given:
                raise InputError(
                    f"--frailty cannot be combined with {name}.", hint="leave one of them out."
                )

    def estimator(self, model: ModelOptions, compute: ComputeOptions) -> "rs.CoxFrailty":
        """An estimator with these options."""
        options = chosen(self) | compute.arguments() | {"ties": model.ties}
        del options["solver"]
        return rs.CoxFrailty(cause=as_cause(model.cause), **options)


@dataclass(frozen=True, kw_only=True)
class PenaltyShapeOptions:
    """A penalty whose strength is still open."""

    penalty: Literal["none", "l1", "l2", "elasticnet"] = option(
        "Penalise the coefficients by this penalty.", "l1", panel=PENALTY
    )
    l1_ratio: float | None = option(
        "Give L1 this share of an elastic net, between 0 and 1.", metavar="R", panel=PENALTY
    )
    unpenalized: list[str] | None = option(
        "Do not penalise this covariate, such as the treatment. May be repeated.",
        metavar="NAME",
        panel=PENALTY,
    )
    factor: list[str] | None = option(
        "Multiply the penalty of a covariate by a factor. May be repeated.",
        metavar="NAME=VALUE",
        panel=PENALTY,
    )

    def __post_init__(self) -> None:
        self._factors()
        if self.penalty == "none":
            for one in given(self, *SCALES, "l1_ratio", "unpenalized", "factor"):
                raise InputError(
                    f"{one} was given, but --penalty is none.",
                    hint="choose --penalty l1, l2 or elasticnet, or leave it out.",
                )
        is_net = self.penalty == "elasticnet"
        if is_net and self.l1_ratio is None:
            raise InputError("--penalty elasticnet needs --l1-ratio.", hint="0.5 is half and half.")
        if not is_net:
            require(given(self, "l1_ratio"), "--penalty elasticnet", "leave it out.")
        if self.l1_ratio is not None and not 0 <= self.l1_ratio <= 1:
            raise InputError(
                f"--l1-ratio must be between 0 and 1, but it is {self.l1_ratio:g}.",
                hint="1 is the lasso, 0 is ridge.",
            )

    def at_strength(self, strength: float) -> "Penalty":
        """The penalty that was asked for, at a strength."""
        if not 0 <= strength < math.inf:
            raise InputError(
                f"--strength must be a finite number of at least 0, but it is {strength:g}.",
                hint="it is on the scale of the total log likelihood.",
            )
        if self.penalty != "elasticnet":
            return self._kind(strength, **self._spared())
        ratio = self._ratio
        return rs.ElasticNet(l1=strength * ratio, l2=strength * (1 - ratio), **self._spared())

    @property
    def _kind(self) -> "type[rs.L1] | type[rs.L2]":
        return rs.L1 if self.penalty == "l1" else rs.L2

    @property
    def _ratio(self) -> float:
        if self.penalty == "elasticnet":
            return self.l1_ratio or 0.0
        return 1.0 if self.penalty == "l1" else 0.0

    def _spared(self) -> dict[str, Any]:
        """What covariates have a penalty of their own."""
        return {"unpenalized": tuple(self.unpenalized or ()), "factor": self._factors()}

    def _factors(self) -> dict[str | int, float] | None:
        factors: dict[str | int, float] = {}
        for name, number in numbers_by_name("--factor", self.factor):
            if name in factors or name in (self.unpenalized or ()):
                raise InputError(
                    f"the penalty of {name!r} was given twice.",
                    hint="give each covariate one --factor, or --unpenalized.",
                )
            factors[name] = number
        return factors or None


@dataclass(frozen=True, kw_only=True)
class PenaltyOptions(PenaltyShapeOptions):
    """A penalty of one strength, on one of three scales; or none."""

    penalty: Literal["none", "l1", "l2", "elasticnet"] = option(
        "Penalise the coefficients by this penalty.", "none", panel=PENALTY
    )
    strength: list[float] | None = option(
        "Set the strength on the scale of the total log likelihood: l1 = S or l2 = S; elastic net: "
        "l1 = S R and l2 = S (1 - R). May be repeated with --cv.",
        metavar="S",
        panel=PENALTY,
    )
    variance: list[float] | None = option(
        "Set the strength by a prior variance, as in Cyclops. May be repeated with --cv.",
        metavar="V",
        panel=PENALTY,
    )
    glmnet_lambda: list[float] | None = option(
        "Set lambda of glmnet with standardize=FALSE. May be repeated with --cv.",
        metavar="L",
        panel=PENALTY,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variance and self.penalty == "elasticnet":
            raise InputError(
                "--variance needs --penalty l1 or --penalty l2.", hint="use --strength."
            )

    def check(self, is_cross_validated: bool) -> None:
        """One strength, or any number to be compared."""
        options = given(self, *SCALES)
        if is_cross_validated:
            if self.penalty == "none":
                raise InputError("--cv needs a penalty.", hint="choose --penalty l1, for example.")
            if len(options) > 1:
                raise InputError(
                    f"{' and '.join(options)} were given together.", hint="use one scale."
                )
            return
        if self.penalty == "none":
            return
        if len(options) != 1:
            said = f"not {' and '.join(options)} together" if options else "but none was given"
            raise InputError(
                f"--penalty {self.penalty} needs one of --strength, --variance and "
                f"--glmnet-lambda, {said}.",
                hint="`riskset path` shows the solutions for a whole range of strengths, and --cv "
                "chooses one.",
            )
        if self.n_given > 1:
            raise InputError(
                f"{options[0]} was given {self.n_given} times.",
                hint="add --cv to compare several strengths.",
            )

    @property
    def n_given(self) -> int:
        """How many strengths were given, on whatever scale."""
        return sum(len(getattr(self, scale) or ()) for scale in SCALES)

    def spelled(self, penalty: "Penalty", typed: "Sequence[Penalty]") -> str:
        """One of the given penalties as it was typed; any other by its strengths."""
        values = [value for scale in SCALES for value in getattr(self, scale) or ()]
        for value, one in zip(values, typed, strict=False):
            if one == penalty:
                return f"{given(self, *SCALES)[0]} {value:.12g}"
        return f"l1 = {penalty.l1:.4g}, l2 = {penalty.l2:.4g}"

    def penalties_for(self, data: "rs.Dataset") -> "list[Penalty]":
        """The penalties that were given; glmnet's scale needs the sum of the weights."""
        if self.penalty == "none":
            return []
        spared = self._spared()
        if self.glmnet_lambda:
            weight = data.outcome_columns.weight
            total = float(data.n_rows if weight is None else weight.sum())
            return [
                rs.ElasticNet.from_glmnet(one, self._ratio, total, **spared)
                for one in self.glmnet_lambda
            ]
        if self.variance:
            return [self._kind.from_variance(one, **spared) for one in self.variance]
        return [self.at_strength(one) for one in self.strength or ()]
