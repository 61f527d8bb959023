"""Disclosure control: decides which numbers of results reveal a small count, in one place."""
