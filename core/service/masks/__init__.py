"""Masks, padding, leakage and the scale, as plain data."""
