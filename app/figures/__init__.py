"""Plotly figures: pure functions from a trace and a selection, drawn only where somebody asks for one."""
