"""Curves, risks and restricted means of each arm, and their differences."""
