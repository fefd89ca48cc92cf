"""Recorded: Train where nothing has to be trained any more, the curves of the models that ship."""
