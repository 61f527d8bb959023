"""The coordinator of a federated fit: takes answers, and asks the next question.

A step runs the minimisation from its beginning, with the answers that are there, up to the first
question without answers. The minimisation is deterministic, so it asks the same questions again; a
question is known by its content.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._runtime import one_blas_thread
from riskset._types import Features
from riskset.data.writers import write_json
from riskset.infer.variance import Covariance, among, generalized_inverse
from riskset.model.penalty import L1, L2, ElasticNet, Penalty
from riskset.network.federated_problem import FederatedMinimisation, FederatedProblem
from riskset.network.messages import Secret, digest, read_message, write_message
from riskset.solve.fit import minimise
from riskset.solve.optimality import in_stored_units
from riskset.solve.result import Solution

__all__ = ["FIT", "Coordinator", "FederatedFit", "FederatedRound"]

FIT, QUESTION, RESULT = "fit.json", "question.json", "result.json"
OF_QUESTIONS = ("id", "riskset", "sites", "model", "options", "left_out")
"""Settings that a question has, so that they stay for all rounds."""
PENALTIES: dict[str, type[Penalty]] = {"L1": L1, "L2": L2, "ElasticNet": ElasticNet}


@dataclass(frozen=True)
class FederatedFit:
    """A model that was fitted over several sites.

    Attributes
    ----------
    covariates : tuple of str
    strengths : tuple of float
        Strengths of the penalty, in the order of the fits; one 0 without a penalty.
    coef : (k, p) list of float
        Coefficients at each strength, per unit of each covariate as given.
    standard_error : (p,) list of float or None, or None
        Of a fit without a penalty, from the inverse information; None where a coefficient is not
        identified.
    log_likelihood, kkt : (k,) list of float
        Log likelihood and relative residual of the optimality conditions.
    status : (k,) list of str
        As `Cox.status_`.
    n_rounds, n_bytes : int
        Questions, and bytes of all questions and answers.
    n_rows, n_events : int
        Of all sites.

    Examples
    --------
    >>> import riskset as rs
    >>> fit = rs.network.FederatedFit(("age",), (0.0,), [[0.1]], [0.02], [-80.5], [1e-12],
    ...                               ["converged"], 4, 9000, 200, 40)
    >>> fit.coef[0][0] / fit.standard_error[0]
    5.0
    """

    covariates: tuple[str, ...]
    strengths: tuple[float, ...]
    coef: list[list[float]]
    standard_error: list[float | None] | None
    log_likelihood: list[float]
    kkt: list[float]
    status: list[str]
    n_rounds: int
    n_bytes: int
    n_rows: int
    n_events: int


@dataclass(frozen=True)
class FederatedRound:
    """Where a federated fit stands.

    Attributes
    ----------
    number : int
        Number of the round.
    question : Path or None
        The question that all sites answer next; None if the fit has ended.
    waiting : tuple of str
        Sites whose answers are missing.
    result : FederatedFit or None

    Examples
    --------
    >>> import riskset as rs
    >>> rs.network.FederatedRound(2, None, (), None).waiting
    ()
    """

    number: int
    question: Path | None
    waiting: tuple[str, ...]
    result: FederatedFit | None


class _Pending(Exception):  # noqa: N818  (no error: the fit goes on in the next round)
    """A question that the sites have not answered yet."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.body = body


class Coordinator:
    """Rounds of one fit."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], secret: Secret) -> None:
        self._folder, self._settings, self._secret = folder, settings, secret
        self._names: list[str] = list(settings["sites"])
        self._answers: dict[str, list[dict[str, Any]]] = {}
        self._marks: dict[str, str] = {}
        self._n_rounds = self._n_bytes = 0

    def step(self) -> FederatedRound:
        """Take all answers, and go on as far as they lead."""
        while self._place(self._n_rounds + 1).is_file():
            missing = self._take(self._n_rounds + 1)
            if missing:
                number = self._n_rounds + 1
                return FederatedRound(number, self._place(number), missing, None)
            self._n_rounds += 1
        try:
            found = self._fit()
        except _Pending as pending:
            return self._ask_next(pending.body)
        document = asdict(found)
        write_json(self._folder / RESULT, document)
        return FederatedRound(self._n_rounds, None, (), found)

    def _place(self, number: int) -> Path:
        return self._folder / f"round-{number:03d}" / QUESTION

    def _ask_next(self, body: dict[str, Any]) -> FederatedRound:
        number = self._n_rounds + 1
        path = self._place(number)
        path.parent.mkdir(exist_ok=True)
        message = {
            "kind": "question",
            "round": number,
            "fit": {name: self._settings[name] for name in OF_QUESTIONS},
            "body": body,
        }
        write_message(path, message, self._secret)
        return FederatedRound(number, path, tuple(self._names), None)

    def _take(self, number: int) -> tuple[str, ...]:
        """Take the answers of a round; the sites that have not answered."""
        path = self._place(number)
        question = read_message(path, "question", self._secret)
        if question["fit"] != {name: self._settings[name] for name in OF_QUESTIONS}:
            raise InputError(
                f"{str(path)!r} is a question of other sites or settings than {FIT}.",
                hint="start again in a new folder to change what is fitted.",
            )
        wanted = digest(question)
        self._n_bytes += path.stat().st_size * len(self._names)
        found, missing = [], []
        for name in self._names:
            file = path.with_name(f"{name}.json")
            if not file.is_file():
                missing.append(name)
                continue
            answer = read_message(file, "answer", self._secret)
            self._check(answer, name, number, wanted, file)
            self._n_bytes += file.stat().st_size
            found.append(answer["body"])
        if not missing:
            self._answers[_key(question["body"])] = found
        return tuple(missing)

    def _check(
        self, answer: Mapping[str, Any], name: str, number: int, wanted: str, file: Path
    ) -> None:
        """Refuse an answer to something else, and of data that changed."""
        for what, given, own in (
            ("fit", answer["fit"], self._settings["id"]),
            ("site", answer["site"], name),
            ("round", answer["round"], number),
            ("question", answer["question"], wanted),
        ):
            if given != own:
                raise InputError(
                    f"{str(file)!r} is the answer of another {what}"
                    + (f": {given!r}, not {own!r}." if what in ("site", "round") else "."),
                    hint="let the site answer the question of this round.",
                )
        known = self._marks.setdefault(name, answer["data"])
        if answer["data"] != known:
            raise InputError(
                f"the data of the site {name!r} changed between the rounds.",
                hint="start again, with the same data at every round.",
            )

    def _ask(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        key = _key(body)
        if key not in self._answers:
            raise _Pending(body)
        return self._answers[key]

    @one_blas_thread
    def _fit(self) -> FederatedFit:
        """The whole fit, or the first question that is not answered."""
        problem = FederatedProblem.of(self._ask, self._names)
        penalty = self._settings["penalty"]
        kinds = [None] if penalty is None else self._penalties(penalty)
        solutions: list[Solution] = []
        aliased = None
        for kind in kinds:
            p = problem.design.n_features
            given = (
                (np.zeros(p), np.zeros(p)) if kind is None else kind.arrays(problem.design.names)
            )
            _, solution = minimise(
                problem,
                *in_stored_units(problem.design, *given),
                tol=float(self._settings["tol"]),
                max_iter=int(self._settings["max_iter"]),
                start=solutions[-1] if solutions else None,
                aliased=aliased,
                method=FederatedMinimisation,
            )
            solutions.append(solution)
        return self._result(problem, solutions, None if penalty is not None else solutions[0])

    def _penalties(self, document: Mapping[str, Any]) -> list[Penalty]:
        options = {name: value for name, value in document.items() if name != "kind"}
        one = PENALTIES[document["kind"]](**options)
        return [one.with_strength(s) for s in self._settings["strengths"]]

    def _result(
        self, problem: FederatedProblem, solutions: Sequence[Solution], free: Solution | None
    ) -> FederatedFit:
        rows = problem.block_rows
        return FederatedFit(
            problem.design.names,
            tuple(self._settings["strengths"]) or (0.0,),
            [one.coef.tolist() for one in solutions],
            None if free is None else _standard_errors(problem, free),
            [float(one.log_likelihood) for one in solutions],
            [float(one.kkt) for one in solutions],
            [str(one.status) for one in solutions],
            self._n_rounds,
            self._n_bytes,
            problem.design.n_rows,
            rows.n_events_counted,
        )


def _standard_errors(problem: FederatedProblem, solution: Solution) -> list[float | None]:
    """From the inverse information at the answer."""
    design = problem.design
    columns = np.flatnonzero(~solution.aliased)
    beta: Features = solution.coef * design.scale
    now = problem.block_rows.evaluate_at(beta)
    information = problem.information(beta, columns, now)
    inverse = among(
        generalized_inverse(information, now.expected_squares[columns]), columns, design.n_features
    )
    found = Covariance("model", np.arange(design.n_features), inverse, inverse.matrix, design.scale)
    return [float(v) if np.isfinite(v) else None for v in found.standard_error]


def _key(body: Mapping[str, Any]) -> str:
    return digest(body)
