"""The specification: its sections, keys, checks and reference."""
