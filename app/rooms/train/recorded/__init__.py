"""Recorded training curves of the models that ship."""
