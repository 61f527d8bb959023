"""Specifications of OHDSI's Strategus and CohortMethod become specifications of studies."""
