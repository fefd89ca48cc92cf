"""One run of a model on a text: what is asked for, the forward pass, what it leaves, and any of its attention on demand."""
