"""Example specifications, which run on bundled or simulated data."""

from importlib.resources import files
from typing import Literal, get_args

from riskset._errors import InputError
from riskset.datasets import rhc_path

__all__ = ["Example", "example"]

Example = Literal["rhc", "cdm", "paper"]


def example(name: Example = "rhc") -> str:
    """Return the text of an example specification.

    Parameters
    ----------
    name : {"rhc", "cdm", "paper"}
        "rhc": five analyses of the bundled cohort of right heart catheterisation. "cdm": new users
        of two drug classes in an OMOP CDM, such as that of `riskset.simulate.toy_cdm`. "paper":
        matching and models of all covariates, in a cohort from ``riskset simulate cohort``.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.study.Study.parse(rs.study.example())
    Study('Right heart catheterisation and survival': 1 comparison x 1 outcome x 5 analyses)
    """
    if name not in get_args(Example):
        raise InputError.wrong_option("name", name, get_args(Example))
    text = (files("riskset.study.examples") / f"{name}.yaml").read_text("utf-8")
    return text.replace("PATH", str(rhc_path()))
