"""Sources of people, outcomes and covariates: tables, CDMs, files of CohortMethod."""
