"""Many runs at once: every head or look silenced in turn, and what every head does over a corpus."""
