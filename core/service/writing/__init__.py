"""A text as the model writes it, as plain data."""
