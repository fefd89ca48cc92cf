"""Activation patching and ablation: many edited runs of one text in a batch. Also the atlas: statistics of every head over a corpus."""

MAX_TOKENS = 128  # default length limit of a text of a corpus; longer texts are truncated
