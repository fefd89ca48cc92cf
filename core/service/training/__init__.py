"""Trainings that run in a process of their own, as plain data."""
