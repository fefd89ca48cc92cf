"""Learning: tasks, the training loop, trainings to watch and those that ended, and what a missing mask leaks."""
