"""The names of what an operator sets in the environment about models: read by who offers them, set by `headlight run`."""

from __future__ import annotations

MODELS = "HEADLIGHT_MODELS"  # Hub ids and folders, separated by commas
DEFAULT = "HEADLIGHT_DEFAULT"  # the model that opens: an id of those that are offered
OWN_MACHINE = (
    "HEADLIGHT_OWN_MACHINE"  # "1" where Headlight runs for the person at this machine, as `make run` starts it
)
