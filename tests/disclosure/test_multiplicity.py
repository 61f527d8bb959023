"""p adjusted for several outcomes: R's numbers, families, and what is hidden reveals nothing."""

import numpy as np
import pytest

from report.made import tables
from report.made_estimates import RUN, estimate
from riskset.disclosure.engine import Disclosure
from riskset.disclosure.multiplicity import ADJUSTED_P, holm
from riskset.results.rows import TABLES, EstimateRow

P = [0.011, 0.02, 0.0004, 0.2, 0.012, 0.74, 0.03, 0.03]
# R: p.adjust(P, "holm") and p.adjust(P, "BH")
HOLM = [0.077, 0.1, 0.0032, 0.4, 0.077, 0.74, 0.12, 0.12]
FDR = [0.032, 0.04, 0.0032, 0.22857142857142856, 0.032, 0.74, 0.04, 0.04]


def made(p, **changes):
    """Runs and main estimates of outcomes with these p; changes by the name of an outcome."""
    runs, estimates = [], []
    first = tables()["runs"][0]
    for k, value in enumerate(p):
        names = RUN | {"outcome": f"o{k}"}
        own = {"p": value, "calibrated_p": None, "target_outcomes": 40} | changes.get(f"o{k}", {})
        runs.append(first | names | {n: own[n] for n in own if n in first})
        rest = {n: v for n, v in own.items() if n not in first or n in ("status", "blinded")}
        estimates.append(estimate(1, "main", "adjusted", -0.5, 0.2) | names | rest)
    return {"runs": runs, "estimates": estimates}


def adjusted(found, least=0):
    rows = Disclosure(lambda name: found.get(name, []), TABLES, least).shown(EstimateRow)
    return {row.outcome: tuple(row[name] for name in ADJUSTED_P) for row in rows}


def test_as_p_adjust_of_r():
    assert holm(np.array(P)) == pytest.approx(HOLM)
    found = adjusted(made(P))
    assert [found[f"o{k}"][0] for k in range(8)] == pytest.approx(HOLM)
    assert [found[f"o{k}"][1] for k in range(8)] == pytest.approx(FDR)
    assert {own[2:] for own in found.values()} == {(None, None)}


def test_calibrated_p_are_a_family_of_their_own():
    changes = {f"o{k}": {"calibrated_p": p} for k, p in enumerate(reversed(P))}
    found = adjusted(made(P, **changes))
    assert [found[f"o{k}"][2] for k in range(8)] == pytest.approx(HOLM[::-1])
    assert [found[f"o{k}"][3] for k in range(8)] == pytest.approx(FDR[::-1])


def test_controls_other_analyses_and_other_roles_are_no_tests_of_a_family():
    found = made(P)
    more = made([1e-9] * 3, o0={"outcome_kind": "negative control"})
    for run, row, names in zip(
        more["runs"],
        more["estimates"],
        ({"outcome": "nc"}, {"analysis": "weighted"}, {"number": 2, "role": "sensitivity"}),
        strict=True,
    ):
        found["estimates"].append(row | {"outcome": "o2"} | names)
        if "role" not in names:
            found["runs"].append(run | {"outcome": "o2"} | names)
    rows = Disclosure(lambda name: found.get(name, []), TABLES, 0).shown(EstimateRow)
    assert [row.multiplicity.holm_p for row in rows[:8]] == pytest.approx(HOLM)
    nc, other, sensitivity = rows[8:]
    assert nc.multiplicity.holm_p is None
    assert other.multiplicity.holm_p == other.multiplicity.fdr_p == 1e-9
    assert sensitivity.multiplicity.holm_p is None


def test_an_estimate_that_does_not_exist_is_no_test():
    found = made([*P, None], o8={"status": "no_events"})
    assert [adjusted(found)[f"o{k}"][0] for k in range(8)] == pytest.approx(HOLM)


@pytest.mark.parametrize("p", [1e-9, 0.5])
@pytest.mark.parametrize(
    "hidden", [{"blinded": True}, {"target_outcomes": 2, "comparator_outcomes": 1}]
)
def test_hidden_estimates_are_not_rejected_and_reveal_nothing(p, hidden):
    """R: p.adjust(c(0.011, 1, 0.0004, 0.2), ...)."""
    found = adjusted(made([0.011, p, 0.0004, 0.2], o1=hidden), least=5)
    assert found["o1"][:2] == (None, None)
    shown = [found[f"o{k}"][:2] for k in (0, 2, 3)]
    assert [own[0] for own in shown] == pytest.approx([0.033, 0.0016, 0.4])
    assert [own[1] for own in shown] == pytest.approx([0.022, 0.0016, 0.26666666666666666])
