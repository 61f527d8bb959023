"""The study of the bundled cohort whose golden numbers R has given."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cohort.golden import table
from riskset.datasets import rhc_path

TEXT = """
title: Right heart catheterisation and death
data:
  name: SUPPORT
  people: rhc.parquet
  treatment: swang1
  id: id
  covariates: {drop: [sex_male, age65, prior_half]}
exposures:
  catheter: {value: 1, label: Right heart catheter}
  none: {value: 0, label: No catheter}
comparisons:
  - {target: catheter, comparator: none}
outcomes:
  death: {time: time, event: event, label: Death}
  later death: {time: time, event: event, prior: prior_half}
defaults:
  tidy: {min_fraction: 0, remove_redundant: false}
  propensity: {penalty: none, cross_validate: false}
analyses:
  one to one:
    match: {}
  four:
    match: {ratio: 4, within: [sex_male, age65]}
    model: {kind: cox}
  overlap weights:
    weight: {estimand: ato}
  deciles:
    stratify: {k: 10}
  trimmed:
    trim: {symmetric: 0.1, refit: true}
    weight: {estimand: ate, stabilise: true}
subgroups:
  sex: {column: sex_male}
risk_times: [30, 365]
"""


def write_rhc(folder: Path) -> Path:
    """The cohort with the blocks of the golden file, and some who are said to have died before."""
    own = pq.read_table(rhc_path())
    golden = table("rhc_ps")
    assert (golden["id"] == own.column("id").to_numpy()).all()
    columns = {name: golden[name].astype(np.int64) for name in ("sex_male", "age65")}
    columns["prior_half"] = (golden["id"] % 2).astype(np.int64)
    for name, values in columns.items():
        own = own.append_column(name, pa.array(values))
    path = folder / "rhc.parquet"
    pq.write_table(own, path)
    return path
