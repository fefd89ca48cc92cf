"""Many runs at once: every head or look silenced in turn, and what every head does over a corpus."""

MOST_TOKENS = 128  # of a text of a corpus, where nothing else is said; of longer ones the beginning is run
