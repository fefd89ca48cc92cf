"""Positions and the order of words, as plain data."""
