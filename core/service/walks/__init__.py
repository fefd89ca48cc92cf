"""A walk through one layer, as plain data."""
