"""Five simulated sites, two without an outcome in the target group; `make_sites.R` made them."""

import csv
from functools import cache
from pathlib import Path

import numpy as np

import riskset as rs
from riskset.network import SiteLikelihood

PLACE = Path(__file__).parent
N_SITES = 5


@cache
def people():
    """Columns of all sites together."""
    table = np.genfromtxt(PLACE / "sites.csv", delimiter=",", names=True)
    return {name: table[name] for name in table.dtype.names}


def of_site(k):
    """X and y of one site, numbered from 1."""
    data = people()
    own = data["site"] == k
    x = data["x"][own][:, None]
    return x, rs.Surv(data["time"][own], data["event"][own].astype(int))


@cache
def profile(k):
    """The profile of a site by riskset."""
    x, y = of_site(k)
    found = rs.profile(rs.Cox(), x, y, parameter="x0", tolerance=0.01)
    return SiteLikelihood(found.values, found.log_likelihood, found.derivative)


def profile_of_r(k):
    """That of R at the nine points or fewer of EvidenceSynthesis."""
    with (PLACE / f"profile-{k}.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    columns = ([float(row[name]) for row in rows] for name in ("point", "value", "derivative"))
    return SiteLikelihood(*columns)
