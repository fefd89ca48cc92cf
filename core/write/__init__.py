"""Text generation: sampling, beam search, and step-by-step writing."""
