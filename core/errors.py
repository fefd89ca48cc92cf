"""Refused and its kinds: every error that is a sentence for a person, saying what is wrong, what is allowed and what to try."""


class Refused(ValueError):
    """The base of them all. The message is shown to visitors as it stands, so it holds no path they should not see."""


class ConfigError(Refused):
    """A configuration that cannot be built; names the fields and both numbers."""


class TextError(Refused):
    """A text that cannot be run: empty, too long for the model, or not text."""


class CheckpointError(Refused):
    """A model that cannot be loaded; names the file and the tensor."""


class GenerationError(Refused):
    """A continuation that cannot be: a setting out of its range, or a model that cannot write."""


class TooLarge(Refused):
    """A run that would not fit; states the bytes it needs and the bytes there are."""


class RunCancelled(Refused):
    """A run that ended early, because no request waited for it any longer."""


class Busy(Refused):
    """Too many runs are waiting already; says how many, and to try again."""


class Unknown(Refused):
    """A key whose request is not remembered. A caller that still has the request submits it again, once."""


class InterventionError(Refused):
    """An edit that does not fit this model or text, or cannot be read; the message says what is possible."""


class Outdated(Refused):
    """A number that would need the weights of a run whose model has been trained since."""
