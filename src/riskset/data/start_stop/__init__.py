"""Rows with start and stop: how they are cut, built from histories, and checked."""
