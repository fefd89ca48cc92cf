"""Headlight in a notebook: a run as one page that needs no server, and the cell that shows it."""
