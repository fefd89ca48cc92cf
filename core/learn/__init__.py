"""Training: toy tasks, the training loop, watched and stored runs, and effects of a missing mask."""
