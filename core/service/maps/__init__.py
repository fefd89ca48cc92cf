"""Attention maps, heads and their measures, as plain data."""
