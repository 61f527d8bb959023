"""How missing values are imputed, declared once for functions and studies."""

from riskset._settings import Settings, setting, settings

__all__ = ["Imputation"]


@settings
class Imputation(Settings):
    """Multiple imputation by chained equations."""

    datasets: int = setting("the number of completed data sets", 20, least=2)
    cycles: int = setting("cycles over all columns with missing values", 10, least=1)
    donors: int = setting(
        "for columns of numbers: the value is that of one of so many rows whose predictions are "
        "the closest",
        5,
        least=1,
    )
