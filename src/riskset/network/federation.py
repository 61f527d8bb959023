"""One model over several sites, by files that go back and forth.

The folder of the coordinator has::

    fit.json                      what is fitted, and the sites
    round-001/question.json       for every site
    round-001/<site>.json         the answers
    ...
    result.json                   the fit, when its certificate holds

`coordinator` takes the steps.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._messages import counted
from riskset._version import __version__
from riskset.data.documents import parse_json
from riskset.data.writers import check_replaceable, write_json
from riskset.model.penalty import Penalty
from riskset.network.coordinator import FIT, Coordinator, FederatedRound
from riskset.network.messages import Secret, digest, read_message, write_message
from riskset.network.site_answers import MODELS, SiteData

__all__ = ["answer_question", "next_round", "start_federation"]

MIN_CELL_COUNT = 5


def start_federation(
    folder: str | Path,
    sites: Sequence[str],
    *,
    model: str = "cox",
    penalty: Penalty | None = None,
    strengths: Sequence[float] = (),
    left_out: Sequence[str] = (),
    tol: float = 1e-8,
    max_iter: int = 200,
    secret: Secret | str | Path | None = None,
    **options: Any,
) -> FederatedRound:
    r"""Begin a fit over several sites, stratified by site, and write the first question.

    The log likelihood is the sum of those of the sites,
    :math:`\ell(\beta) = \sum_s \ell_s(\beta)`, because every site is a stratum of its own (or
    several, with the strata of its data). Each round the sites get coefficients and answer with
    gradients, sums and the information. The minimiser is that of `riskset.Cox`.

    Parameters
    ----------
    folder : str or Path
        A new folder, which holds all messages.
    sites : sequence of str
        Names of the sites.
    model : {"cox", "finegray"}
        Fine and Gray's model estimates the distribution of censoring at each site.
    penalty : L1, L2, ElasticNet or None
    strengths : sequence of float
        Strengths of a path of penalties, the strongest first. Default: the strength of `penalty`.
    left_out : sequence of str
        Covariates that no site uses, such as those that few people of a site have.
    tol, max_iter
        As for `Cox`.
    secret : str, Path or None
        The file of the secret. Default: the variable RISKSET_NETWORK_SECRET.
    **options
        Further options of `Cox` or `FineGray`, such as ``ties="efron"``.

    Returns
    -------
    FederatedRound

    Raises
    ------
    InputError
        If the folder is not empty, or a name or an option cannot be used.

    References
    ----------
    Lu, Wang, Xia, Ohno-Machado and Jiang (2015), WebDISCO: a web service for distributed Cox model
    learning without patient-level data sharing, Journal of the American Medical Informatics
    Association 22, 1212-1219, doi:10.1093/jamia/ocv083.

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> os.environ["RISKSET_NETWORK_SECRET"] = "a secret that no site tells others"
    >>> data = rs.simulate_cox(400, 3, 0.5, seed=1)
    >>> halves = {"north": slice(0, 200), "south": slice(200, 400)}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     now = rs.network.start_federation(Path(place) / "fit", list(halves))
    ...     while now.question is not None:
    ...         for site, rows in halves.items():
    ...             y = rs.Surv(data.time[rows], data.event[rows])
    ...             path = rs.network.answer_question(now.question, data.X[rows], y, site=site)
    ...         now = rs.network.next_round(Path(place) / "fit")
    >>> now.result.status
    ['converged']
    """
    place = Path(folder)
    check_replaceable(place, "a fit")
    names = [str(name) for name in sites]
    # Some file systems do not tell upper from lower case.
    n_files = len({name.casefold() for name in names})
    if len(names) < 2 or n_files < len(names) or not all(map(_is_name, names)):
        raise InputError(
            f"`sites` must be two or more different names of letters, digits, - and _, but it is "
            f"{names!r}.",
            hint="they are names of files, too, and some file systems take A and a for the same.",
        )
    if model not in MODELS:
        raise InputError.wrong_option("model", model, tuple(MODELS))
    _check_options(model, {**options, "tol": tol, "max_iter": max_iter})
    values = _strengths(penalty, strengths)
    settings = {
        "id": secrets.token_hex(16),
        "riskset": __version__,
        "sites": names,
        "model": model,
        "options": options,
        "penalty": None if penalty is None else _penalty_document(penalty),
        "strengths": values,
        "left_out": [left_out] if isinstance(left_out, str) else list(left_out),
        "tol": tol,
        "max_iter": max_iter,
    }
    key = secret if isinstance(secret, Secret) else Secret(secret)
    place.mkdir(parents=True, exist_ok=True)
    write_json(place / FIT, settings)
    return Coordinator(place, settings, key).step()


def next_round(folder: str | Path, *, secret: Secret | str | Path | None = None) -> FederatedRound:
    """Read the answers, and write the next question or the result.

    Parameters
    ----------
    folder : str or Path
        The folder of `start_federation`, with the answers of the latest round beside its question.
    secret : str, Path or None
        As for `start_federation`.

    Returns
    -------
    FederatedRound
        With the sites whose answers are missing, if some are.

    Raises
    ------
    InputError
        If an answer was changed, is signed with another secret, or belongs to another question,
        round or site; if the data of a site changed; if sites have different covariates.

    Examples
    --------
    See `start_federation`.

    >>> import riskset as rs
    >>> try:
    ...     rs.network.next_round("no-such-folder")
    ... except rs.InputError as error:
    ...     print(error.message)
    'no-such-folder' has no federated fit.
    """
    place = Path(folder)
    if not (place / FIT).is_file():
        raise InputError(
            f"{str(place)!r} has no federated fit.", hint="start one with `riskset federate start`."
        )
    try:
        settings = parse_json((place / FIT).read_bytes())
    except ValueError as error:
        raise InputError(
            f"{str(place / FIT)!r} is damaged: {error}.", hint="start again in a new folder."
        ) from None
    key = secret if isinstance(secret, Secret) else Secret(secret)
    return Coordinator(place, settings, key).step()


def answer_question(
    question: str | Path,
    X: object,
    y: object = None,
    *,
    site: str,
    out: str | Path | None = None,
    min_cell_count: int = MIN_CELL_COUNT,
    secret: Secret | str | Path | None = None,
) -> Path:
    """Answer a question at a site, with sums over all its rows.

    Parameters
    ----------
    question : str or Path
        The file of the question.
    X, y
        The rows of the site, as for `Cox.fit`.
    site : str
        Name of the site.
    out : str or Path, optional
        File of the answer. Default: ``<site>.json`` beside the question.
    min_cell_count : int
        The site does not answer if fewer rows, events, or rows that differ in a covariate are
        behind a sum, unless there are none.
    secret : str, Path or None
        As for `start_federation`.

    Returns
    -------
    Path
        The file of the answer.

    Raises
    ------
    InputError
        If the question was changed, is signed with another secret or is for other sites; if few
        people would be behind a sum, or the coefficients single out people.

    Examples
    --------
    See `start_federation`.

    >>> import os
    >>> import riskset as rs
    >>> os.environ["RISKSET_NETWORK_SECRET"] = "a secret that no site tells others"
    >>> try:
    ...     rs.network.answer_question("none.json", [[1.0]], rs.Surv([1], [1]), site="north")
    ... except rs.InputError as error:
    ...     print(error.message)
    there is no message 'none.json'.
    """
    key = secret if isinstance(secret, Secret) else Secret(secret)
    path = Path(question)
    message = read_message(path, "question", key)
    settings, body = message["fit"], message["body"]
    if site not in settings["sites"]:
        raise InputError.unknown_name("site", site, settings["sites"], place=path.name)
    if settings["riskset"] != __version__:
        raise InputError(
            f"the question comes from riskset {settings['riskset']}, but this is {__version__}.",
            hint="install the same version everywhere.",
        )
    data = SiteData.of(site, settings, (X, y), min_cell_count)
    facts = data.facts()
    answer = {
        "kind": "answer",
        "fit": settings["id"],
        "round": message["round"],
        "site": site,
        "question": digest(message),
        "data": key.of_data(digest(data.mark(facts))),
        "body": _body(data, facts, body),
    }
    target = path.with_name(f"{site}.json") if out is None else Path(out)
    write_message(target, answer, key)
    return target


def _body(data: SiteData, facts: dict[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    if asked["ask"] == "facts":
        return facts
    if asked["ask"] == "variation":
        weights = np.array(asked["weights"], dtype=np.float64)
        return {"varies": data.variation(weights, float(asked["tolerance"]))}
    coef = np.array(asked["coef"], dtype=np.float64)
    if coef.size != data.design.n_features:
        raise InputError(
            f"the question has {counted(coef.size, 'coefficient')}, but the site {data.site!r} has "
            f"{counted(data.design.n_features, 'covariate')}.",
            hint="answer all questions of a fit with the same data.",
        )
    return data.evaluation(coef, np.array(asked["columns"], dtype=np.int64))


def _penalty_document(penalty: Penalty) -> dict[str, Any]:
    kind = type(penalty).__name__
    return {"kind": kind, **json.loads(json.dumps(penalty.get_params(deep=False), default=list))}


def _check_options(model: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the model does not have, or values that they cannot have."""
    known = MODELS[model]().get_params(deep=False)
    for name in options:
        if name not in known:
            raise InputError.unknown_name("option", name, known, place=f"`{model}`")
    chosen = MODELS[model](**options)
    chosen._check_parameters()
    for option in chosen._likelihood_options:
        raise InputError(
            f"`{option}` is not available for a federated fit.",
            hint="use `ties='efron'`, or fit on one machine.",
        )


def _strengths(penalty: Penalty | None, strengths: Sequence[float]) -> list[float]:
    """Strengths of the path; of the penalty alone if none are named."""
    if penalty is None:
        if len(strengths):
            raise InputError("`strengths` needs a penalty.", hint="give `penalty` as well.")
        return []
    if not isinstance(penalty, Penalty):
        raise InputError(
            f"`penalty` must be L1, L2, ElasticNet or None, but it is {penalty!r}.",
            hint="such as riskset.L2(10).",
        )
    return [penalty.with_strength(s).strength for s in strengths] or [penalty.strength]


def _is_name(name: str) -> bool:
    return bool(name) and all(c.isalnum() or c in "-_" for c in name) and name.lower() != "question"
