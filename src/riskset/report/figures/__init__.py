"""Figures of the report: each turns numbers and words into a `DrawnFigure`."""
