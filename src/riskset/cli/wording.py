"""Messages of the Python interface in the words of the command line."""

import ast
import re

__all__ = ["in_keys", "in_options"]

# What arguments of the Python interface are called here; those that are absent are not reachable.
OPTIONS = {
    "cause": "--cause",
    "censored": "--censored",
    "censoring": "--censoring",
    "censoring_beyond": "--censoring-beyond",
    "censoring_group": "--censoring-group",
    "censoring_ties": "--censoring-ties",
    "cluster": "--cluster",
    "covariate_columns": "--covariate-columns",
    "covariates": "--covariates",
    "covariates_query": "--covariates-query",
    "covariates_table": "--covariates-table",
    "density": "--density",
    "device": "--device",
    "checkpoint": "--checkpoint",
    "drop": "--drop",
    "duplicates": "--duplicates",
    "entry": "--entry",
    "event": "--event",
    "factor": "--factor",
    "folds": "--folds",
    "group": "--group",
    "groups": "--groups",
    "id": "--id",
    "interval": "--interval",
    "l1_ratio": "--l1-ratio",
    "level": "--level",
    "max_iter": "--max-iter",
    "method": "--interval",
    "min_ratio": "--min-ratio",
    "n_covariates": "--columns",
    "n_penalties": "--n-penalties",
    "n_persons": "--rows",
    "n_rows": "--rows",
    "n_threads": "--threads",
    "offset": "--offset",
    "parameters": "--parameter",
    "penalty": "--penalty",
    "query": "--query",
    "repeats": "--repeats",
    "replicates": "--replicates",
    "retune": "--retune",
    "sample_weight": "--weight",
    "rule": "--rule",
    "score": "--score",
    "search": "--search",
    "seed": "--seed",
    "solver": "--solver",
    "strata": "--strata",
    "strength": "--strength",
    "table": "--table",
    "ties": "--ties",
    "time": "--time",
    "time_digits": "--time-digits",
    "times": "--times",
    "tol": "--tol",
    "type": "--interval-type",
    "unknown_rows": "--unknown-rows",
    "unpenalized": "--unpenalized",
    "variance": "--variance",
    "weight": "--weight",
}

# Where a whole phrase is of Python, it is replaced as a whole; in order, before the names.
PHRASES = {
    r"riskset\.aalen_johansen": "`riskset curves`",
    r"riskset\.logrank_test": "`riskset curves` and one --cause",
    r"penalty=riskset\.L1\(1\.0\)": "--penalty l1 --strength 1",
    r"penalty=None": "--penalty none",
    r"Cox\(cause=\.\.\.\)": "--model cox --cause",
    r" \(`time_digits` of riskset\.read_dataset, --time-digits on the command line\)": (
        " with --time-digits"
    ),
    r"`statuses` says which; raise max_iter, or": "raise --max-iter, or",
    r"check `unpenalized` and the covariates, or pass `penalties`": (
        "check --unpenalized and the covariates"
    ),
    r"pass a mapping such as \{'treatment': 0\.0\}": "use --unpenalized or --factor NAME=VALUE",
    r", or pass one of its relations to Dataset\.from_frame": "",
    r"the columns with covariate_columns=\(row, covariate, value\)": (
        "the columns with --covariate-columns ROW,COVARIATE,VALUE"
    ),
    r" \(of riskset\.Surv, or where the data are read\)": "",
    r", or name causes by making `y` with riskset\.Surv\(time, labels, censored=\.\.\.\)": "",
    r"`folds` must have at least two different ids": "--fold must have at least two different ids",
    r"choose at most [0-9]+ of them with `groups`": (
        "leave --plot out (the table has all groups), or keep the rows of fewer groups"
    ),
    r"check that `group` holds groups": "check that --group names a column of groups",
    r"the linear predictor needs no stratum": (
        "without --times only the linear predictor is written, which needs no stratum"
    ),
    r"`y`": "the table",
}

NAME = "|".join(sorted(OPTIONS, key=len, reverse=True))
# Not after a quotation mark: there a name of a column or a level begins.
GIVEN = re.compile(rf"(?<![\w'\"])({NAME})=(\([^()]*\)|\[[^\[\]]*\]|'[^']*')")
QUOTED = re.compile(rf"`({NAME})`")


def in_options(message: str) -> str:
    """An error or a warning of the Python interface as a user of the command line would say it.

    Names of arguments in backticks, and arguments with a value, become options: `time_digits` is
    --time-digits, and ``duplicates='sum'`` is ``--duplicates sum``.
    """
    for phrase, words in PHRASES.items():
        message = re.sub(phrase, lambda _, words=words: words, message)  # type: ignore[misc]
    message = GIVEN.sub(lambda found: _with_value(found[1], found[2]), message)
    return QUOTED.sub(lambda found: OPTIONS[found[1]], message)


# The same for the specification of a study, whose keys are called as arguments are.
PHRASES_OF_STUDIES = {
    r", or pass one of its relations to Dataset\.from_frame": "",
    r", or give a `query`": "",
    r"`table` and `query` belong": "`table` belongs",
    r"leave them out": "leave it out",
    r"name the columns with covariate_columns=\(row, covariate, value\), or call them": (
        "call the columns"
    ),
    r"model='(\w+)'": r"`kind: \1`",
}
KEY = re.compile(r"(?<![\w'\"`])(\w+)=(?:'([^']*)'|(True|False))")


def in_keys(message: str) -> str:
    """An error of the Python interface as the specification of a study would say it.

    ``duplicates='sum'`` is the key `duplicates: sum`.
    """
    for phrase, words in PHRASES_OF_STUDIES.items():
        message = re.sub(phrase, words, message)
    return KEY.sub(lambda found: f"`{found[1]}: {found[2] or found[3].lower()}`", message)


def _with_value(name: str, written: str) -> str:
    value = ast.literal_eval(written)
    option = OPTIONS[name]
    if not isinstance(value, (tuple, list)):
        return f"{option} {value}"
    if name == "covariate_columns":
        return f"{option} {','.join(value)}"
    return " ".join(f"{option} {one}" for one in value)
