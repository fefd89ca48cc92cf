"""GGUF, llama.cpp's format: converts header, names, layouts, vocabulary and packed numbers to those of a published family.

The gguf package is imported only when such a file is opened, because that takes longer than importing the rest of core.checkpoints.
"""

from .parts import SUFFIX, is_gguf, models_in, parts_of, title_of

__all__ = ["SUFFIX", "is_gguf", "models_in", "parts_of", "title_of"]
