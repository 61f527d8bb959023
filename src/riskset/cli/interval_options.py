"""The options of confidence intervals, and those of the bootstrap of which they may be made."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from riskset._errors import InputError, check_once
from riskset.cli.options import RESULT, RUN, chosen, given, option, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    import riskset as rs
    from riskset.data.design import Design
    from riskset.estimators._interval import ConfidenceInterval
    from riskset.model.penalty import Penalty

__all__ = ["BootstrapOptions", "IntervalOptions"]

SEEDED = ("seed", "engine")
"""Options that cross-validation has, too."""


@dataclass(frozen=True, kw_only=True)
class BootstrapOptions:
    """A bootstrap, if it is asked for."""

    replicates: int | None = option(
        "bootstrap: draw this number of resamples, of rows or of clusters (default 200).",
        metavar="B",
        panel=RESULT,
    )
    interval_type: Literal["percentile", "basic", "bca", "normal"] | None = option(
        "bootstrap: compute intervals of this type (default percentile).", panel=RESULT, of="type"
    )
    retune: bool = option(
        "bootstrap, with --cv: choose the penalty again in each resample.", False, panel=RESULT
    )
    seed: int | None = option(
        "Seed the random numbers of --cv and the bootstrap (default 1).", panel=RUN
    )
    engine: Literal["joblib", "dask", "ray"] | None = option(
        "--cv, bootstrap: fit in processes of joblib, Dask or Ray instead of threads. "
        "DASK_SCHEDULER_ADDRESS and RAY_ADDRESS name a cluster.",
        panel=RUN,
    )

    @property
    def type(self) -> Literal["percentile", "basic", "bca", "normal"]:
        """The type of interval."""
        return self.interval_type or "percentile"

    @property
    def n_replicates(self) -> int:
        """How many resamples."""
        return 200 if self.replicates is None else self.replicates

    def check(self, interval: str | None, level: float, *, is_cross_validated: bool) -> None:
        """Refuse options of a bootstrap without one, and one that is too small, before reading."""
        if interval != "bootstrap":
            require(given(self, "replicates", "interval_type", "retune"), "--interval bootstrap")
            if not is_cross_validated:
                require(given(self, *SEEDED), "--interval bootstrap or --cv")
            return
        if self.retune and not is_cross_validated:
            raise InputError(
                "--retune needs --cv, because it repeats how the penalty was chosen.",
                hint="add it, or leave this out.",
            )
        # Here, because it brings scikit-learn.
        from riskset.estimators.bootstrap import check_interval

        check_interval(self.n_replicates, level, self.type)

    def of(
        self, model: "rs.Cox | rs.FineGray", parameters: "Sequence[str] | None"
    ) -> "rs.Bootstrap":
        """The bootstrap of a fitted model."""
        options = chosen(self) | {"parameters": parameters}
        options.pop("type", None)
        return model.bootstrap(**options)


@dataclass(frozen=True, kw_only=True)
class IntervalOptions:
    """Confidence intervals, if they are asked for."""

    interval: Literal["wald", "robust", "profile", "bootstrap"] | None = option(
        "Compute confidence intervals by this method (default: compute none).",
        panel=RESULT,
        of="method",
    )
    parameter: list[str] | None = option(
        "Compute the interval of this covariate (default: of all). May be repeated.",
        metavar="NAME",
        panel=RESULT,
        of="parameters",
    )
    level: float = option("Compute intervals at this confidence level.", 0.95, panel=RESULT)
    penalized: bool = option(
        "profile, bootstrap: let --parameter name penalised covariates, whose intervals do not "
        "have the stated coverage.",
        False,
        panel=RESULT,
    )

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise InputError(
                f"--level must be between 0 and 1, but it is {self.level:g}.",
                hint="for example --level 0.95.",
            )
        if self.penalized and self.has_standard_error:
            raise InputError(
                "--penalized needs --interval profile or bootstrap.",
                hint="add one of them, or leave this out.",
            )
        if self.penalized and not self.parameter:
            raise InputError(
                "--penalized needs --parameter: it is for covariates that are named.",
                hint="for example --parameter age.",
            )
        if self.interval is None:
            require(given(self, "parameter", "level"), "--interval", "for example --interval wald.")

    @property
    def has_standard_error(self) -> bool:
        """Whether there is no interval, or one that is made of a standard error."""
        return self.interval not in ("profile", "bootstrap")

    def check_penalty(self, penalty: str) -> None:
        """A penalty excludes the intervals that are made of a standard error."""
        if self.interval is not None and self.has_standard_error and penalty != "none":
            raise InputError(
                f"--interval {self.interval} is not defined for a penalised fit, because a penalty "
                "biases the estimates.",
                hint="leave --penalty out, refit with the covariates that a penalty chose, or use "
                "--interval profile or bootstrap for a covariate named by --unpenalized.",
            )

    def check_names(self, design: "Design", penalty: "Penalty | None") -> None:
        """Covariates that were asked for must be in the model, which shows before the fit."""
        from riskset.model.references import without_references

        names = without_references(design, penalty).names
        check_once("--parameter", self.parameter or ())
        for name in self.parameter or ():
            if name not in names:
                raise InputError.unknown_name("--parameter", name, names)
        if self.has_standard_error or penalty is None or self.penalized:
            return
        shares = penalty.factors(names) * (penalty.l1 + penalty.l2)
        free = {name for name, share in zip(names, shares, strict=True) if not share}
        for name in self.parameter or (() if free else names[:1]):
            if name not in free:
                raise InputError(
                    f"--interval {self.interval} is for covariates without a penalty, but "
                    f"{name!r} is penalised, which biases its estimate.",
                    hint=f"name it by --unpenalized {name}; or by --parameter {name} --penalized "
                    "for an interval that does not have the stated coverage.",
                )

    def of(
        self, model: "rs.Cox | rs.FineGray", bootstrap: BootstrapOptions
    ) -> "tuple[ConfidenceInterval | None, rs.Bootstrap | None]":
        """The intervals of a fitted model, and the bootstrap that they are made of."""
        if self.interval is None:
            return None, None
        if self.interval == "bootstrap":
            resamples = bootstrap.of(model, self.parameter or None)
            return resamples.interval(self.level, bootstrap.type), resamples
        options = chosen(self)
        if not self.penalized:  # which a model without penalties does not know
            del options["penalized"]
        return model.confidence_interval(**options), None
