"""Bundled cohorts for examples and tests.

The ``README.md`` of this folder describes their origin and columns.
"""

from importlib.resources import files
from pathlib import Path

from riskset.data.dataset import Dataset
from riskset.data.readers import read_dataset

__all__ = ["cohort_method_path", "load_rhc", "rhc_path"]


def rhc_path(*, categories: bool = False) -> Path:
    """Return the path of the bundled right-heart-catheterisation cohort, a Parquet file.

    Parameters
    ----------
    categories : bool
        Return the table with categories as text, instead of columns of zeros and ones.

    Returns
    -------
    Path

    Examples
    --------
    >>> import riskset.datasets
    >>> riskset.datasets.rhc_path().name
    'rhc.parquet'
    """
    return Path(str(files("riskset.datasets"))) / (
        "rhc_raw.parquet" if categories else "rhc.parquet"
    )


def cohort_method_path() -> Path:
    """Return the path of a small example of a file of CohortMethod.

    It has eight made-up people, with the outcomes 3 and 4, in the form in which R's
    ``saveCohortMethodData`` wrote before 2025.

    Returns
    -------
    Path

    Examples
    --------
    >>> import riskset.datasets
    >>> riskset.datasets.cohort_method_path().name
    'cohort_method_data.zip'
    """
    return Path(str(files("riskset.datasets"))) / "cohort_method_data.zip"


def load_rhc(*, categories: bool = False) -> Dataset:
    """Load the right-heart-catheterisation cohort of 5,735 critically ill patients.

    Time is in days from admission, the event is death, and the treatment ``swang1`` is a right
    heart catheter within the first day. All other columns are covariates.

    Parameters
    ----------
    categories : bool
        Read the table with categories as text (the treatment is then ``fac_swang1=RHC``), instead
        of columns of zeros and ones. Both give the same models.

    Returns
    -------
    Dataset

    References
    ----------
    Connors et al. (1996), JAMA 276, 889-897, doi:10.1001/jama.1996.03540110043030.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.load_rhc()
    >>> cohort.n_rows, cohort.outcome().n_events
    (5735, 3722)
    """
    return read_dataset(rhc_path(categories=categories), time="time", event="event", id="id")
