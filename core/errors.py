"""Errors for users. Each message says what is wrong, what is allowed and what to try."""

from __future__ import annotations


class HeadlightError(ValueError):
    """Base class. Its message is shown to users verbatim, so it must not contain private paths."""


class ConfigError(HeadlightError):
    """Invalid configuration. Names the fields and both numbers."""


class TextError(HeadlightError):
    """A text that cannot be run: empty, too long for the model, or not text."""


class CheckpointError(HeadlightError):
    """A model that cannot be loaded. Names the file and the tensor."""


class GenerationError(HeadlightError):
    """A setting of generation that is out of range, or a model that cannot generate text."""


class TooLarge(HeadlightError):
    """A run that would not fit into memory. States the needed and the free bytes."""


class RunCancelled(HeadlightError):
    """A run that was cancelled because no request waited for it any longer."""


class ServerBusy(HeadlightError):
    """Too many runs are queued. States how many, and asks to try again."""


class UnknownRun(HeadlightError):
    """The request of a key is no longer stored. Callers that have the request submit it again, once."""


class InterventionError(HeadlightError):
    """An edit that does not fit the model or text, or cannot be parsed. Says what is possible."""


class StaleTrace(HeadlightError):
    """The model has been trained since this run, so its weights are no longer those of the run."""


def install_line(extra: str) -> str:
    """The command that installs an extra, in quotes because shells expand brackets."""
    return f'pip install "headlight-attention[{extra}]"'


def missing_extra(what: str, module: str, extra: str) -> str:
    """Error message for a missing module."""
    return f"{what} needs {module}, which is not installed. It comes with: {install_line(extra)}"
