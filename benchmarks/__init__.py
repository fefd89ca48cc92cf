"""Measurements of time, memory and bytes."""

import os

# The servers of benchmarks and those who ask them name runs and visitors alike.
os.environ.setdefault("HEADLIGHT_SECRET", os.urandom(16).hex())
