"""Text of a formula, such as ``Surv(time, event) ~ bs(age, df=4) + strata(site)``, in its parts.

formulaic finds the terms. It evaluates them as Python, and a formula is text that others may have
written, also in a file of a saved model. So only the functions of `FUNCTIONS` and arithmetic are
accepted.
"""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from riskset._errors import InputError

__all__ = ["ModelFormula", "covariate_terms", "formulaic_package", "variables_of", "wrong_formula"]

FUNCTIONS = (
    "bs", "ns", "cr", "cs", "cc", "poly", "center", "scale", "standardize", "C", "I", "log", "log2",
    "log10", "exp", "Treatment", "Sum", "Helmert", "Poly", "Diff",
)  # fmt: skip
NUMPY = ("log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs", "minimum", "maximum")
CONTRASTS = ("treatment", "sum", "helmert", "poly", "diff", "SAS")
NODES = (
    ast.Expression, ast.Call, ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp,
    ast.operator, ast.unaryop, ast.Compare, ast.cmpop, ast.keyword, ast.List, ast.Tuple, ast.Load,
)  # fmt: skip
SPECIAL = {"strata": "strata", "cluster": "cluster", "offset": "offset"}
"""Terms that are no covariates, and the roles of their columns."""


EXAMPLE = "for example 'Surv(time, event) ~ bs(age, df=4) + sex * treatment + strata(site)'."


@dataclass(frozen=True)
class ModelFormula:
    """A formula in parts: `covariates`, its right side as text, and roles of columns.

    `roles` has ``time``, ``event``, ``entry`` and ``cause`` of ``Surv(...)`` on the left side, and
    columns of ``strata()``, ``cluster()`` and ``offset()`` on the right side.

    Examples
    --------
    >>> found = ModelFormula.parse("Surv(time, event) ~ bs(age, df=4) + sex + strata(site)")
    >>> found.roles
    {'time': 'time', 'event': 'event', 'strata': ('site',)}
    """

    covariates: str
    roles: Mapping[str, object]

    @classmethod
    def parse(cls, text: object) -> "ModelFormula":
        """The parts of a formula, such as ``Surv(time, event) ~ age + strata(site)`` or ``~ age``.

        Raises `InputError` if the text is not a formula, or has a function that is not known.
        """
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"`formula` must be text, but it is {text!r}.", hint=EXAMPLE)
        left, _, right = text.rpartition("~")
        roles: dict[str, object] = {}
        if left.strip():
            roles |= _outcome(left.strip(), text)
        for term in _terms(right):
            special = _special(term, text)
            if special is not None:
                role, names = special
                if role in roles and role != "strata":
                    raise wrong_formula(text, f"it has two {role}() terms", "keep one of them.")
                before = roles.get(role, ())
                roles[role] = (*before, *names) if role == "strata" else names[0]  # type: ignore[misc]
        return cls(right.strip(), roles)


def formulaic_package() -> Any:
    """formulaic, which is an extra."""
    try:
        import formulaic
    except ImportError:
        raise InputError(
            "a formula needs the package formulaic, which is not installed.",
            hint="pip install 'riskset[formula]'",
        ) from None
    return formulaic


def wrong_formula(text: str, what: str, hint: str = EXAMPLE) -> InputError:
    """The error of a formula that cannot be used."""
    return InputError(f"the formula {text.strip()!r} cannot be used: {what}.", hint=hint)


def _terms(right: str) -> list[Any]:
    """Terms of the right side; the intercept, which a hazard model does not have, is among them."""
    formulaic = formulaic_package()
    try:
        parsed = formulaic.Formula("1 + " + right)
    except Exception as error:  # formulaic raises errors of many classes
        raise wrong_formula(right, str(error).splitlines()[0].rstrip(".")) from None
    if not isinstance(parsed, formulaic.SimpleFormula):
        raise wrong_formula(right, "it has several parts")
    if any(repr(term) == "0" for term in parsed):
        raise wrong_formula(right, "it has the term 0")
    return list(parsed)


def covariate_terms(right: str) -> list[Any]:
    """Terms of the right side that are covariates, and the intercept."""
    return [term for term in _terms(right) if _special(term, right) is None]


def _call(expression: str) -> ast.Call | None:
    try:
        node = ast.parse(expression, mode="eval").body
    except SyntaxError:
        return None
    return node if isinstance(node, ast.Call) else None


def _special(term: Any, text: str) -> tuple[str, tuple[str, ...]] | None:
    """Role and columns of a term such as ``strata(site)``; None for covariates."""
    calls = [_call(str(factor.expr)) for factor in term.factors]
    found = [
        call
        for call in calls
        if call and isinstance(call.func, ast.Name) and call.func.id in SPECIAL
    ]
    if not found:
        return None
    call = found[0]
    assert isinstance(call.func, ast.Name)
    if len(calls) > 1:
        raise wrong_formula(
            text, f"{call.func.id}() stands within an interaction", "add it as a term."
        )
    role = SPECIAL[call.func.id]
    names = tuple(one.id for one in call.args if isinstance(one, ast.Name))
    wanted = len(names) >= 1 if call.func.id == "strata" else len(names) == 1
    if not wanted or len(names) < len(call.args) or call.keywords:
        raise wrong_formula(
            text,
            f"{ast.unparse(call)} does not name {'a column' if role != 'strata' else 'columns'}",
            f"for example {call.func.id}(site); make other values a column first.",
        )
    return role, names


def _outcome(left: str, text: str) -> dict[str, object]:
    """Roles of ``Surv(time, event)`` and ``Surv(entry, time, event)``."""
    call = _call(left)
    if call is None or not (isinstance(call.func, ast.Name) and call.func.id == "Surv"):
        raise wrong_formula(text, "its left side is not Surv(time, event)")
    if call.keywords or len(call.args) not in (2, 3):
        raise wrong_formula(
            text, "Surv() takes two columns (time, event) or three (entry, time, event)"
        )
    roles: dict[str, object] = {}
    *times, event = call.args
    if isinstance(event, ast.Compare) and isinstance(event.ops[0], ast.Eq) and len(event.ops) == 1:
        (value,) = event.comparators
        if isinstance(value, ast.Constant) and type(value.value) in (int, str):
            roles["cause"], event = value.value, event.left
    named = dict(zip(("entry", "time")[-len(times) :], times, strict=True)) | {"event": event}
    for role, node in named.items():
        if not isinstance(node, ast.Name):
            raise wrong_formula(text, f"{ast.unparse(node)!r} in Surv() is not a column")
        roles[role] = node.id
    return roles


def variables_of(term: Any, text: str) -> Iterable[str]:
    """Columns that a term uses; an error if it has anything but known functions."""
    for factor in term.factors:
        expression = str(factor.expr)
        if factor.eval_method.value == "lookup":
            yield expression
        elif factor.eval_method.value == "python":
            yield from _columns_of(expression, text)


def _columns_of(expression: str, text: str) -> Iterable[str]:
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        raise wrong_formula(
            text, f"{expression!r} cannot be read", "rename columns with spaces."
        ) from None
    functions: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, NODES):
            raise wrong_formula(
                text, f"{ast.unparse(node)!r} is not arithmetic or a known function", KNOWN
            )
        if isinstance(node, ast.Call):
            _check_function(node.func, text)
            functions |= {id(one) for one in ast.walk(node.func)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in functions:
            _check_function(node, text)
            functions |= {id(one) for one in ast.walk(node)}
        if isinstance(node, ast.Name) and id(node) not in functions:
            yield node.id


KNOWN = (
    f"use {', '.join(FUNCTIONS)}, contr.{', contr.'.join(CONTRASTS)} or np.{', np.'.join(NUMPY)}; "
    "make other values a column first."
)


ELSEWHERE = {
    "frailty": "name the clusters by cluster(id), and fit `riskset.CoxFrailty`.",
    "tt": "fit `riskset.TimeEffectCox`, or `riskset.Cox` to rows of `riskset.time_interactions`.",
}
"""Functions of R's formulas, and what has their place."""


def _check_function(node: ast.expr, text: str) -> None:
    if isinstance(node, ast.Name):
        if node.id in FUNCTIONS:
            return
        if node.id in ELSEWHERE:
            raise wrong_formula(text, f"it does not take {node.id!r}", ELSEWHERE[node.id])
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        known = {"np": NUMPY, "contr": CONTRASTS}.get(node.value.id, ())
        if node.attr in known:
            return
    raise wrong_formula(text, f"{ast.unparse(node)!r} is not a known function", KNOWN)
