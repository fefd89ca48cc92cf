"""GGUF, the form of llama.cpp, as a checkpoint: header, names, layouts, vocabulary and packed numbers become a published family's.

Nothing here imports the gguf package before a file of that form is opened: it takes longer than the rest of core.checkpoints.
"""

from .parts import SUFFIX, is_gguf, models_in, parts_of, title_of

__all__ = ["SUFFIX", "is_gguf", "models_in", "parts_of", "title_of"]
